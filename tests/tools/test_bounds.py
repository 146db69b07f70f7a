"""What the operating system said, as a sentence about the path that was asked for."""

import errno

import pytest

from dragoman.tools.disk import os_fault


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file"), "a/b: no such file or directory."),
        (IsADirectoryError(errno.EISDIR, "Is a directory"), "a/b is a directory"),
        (PermissionError(errno.EACCES, "Permission denied"), "a/b: permission denied."),
        (OSError(errno.ENOSPC, "No space left on device"), "a/b: no space left on device."),
        (OSError("odd"), "a/b: odd."),
    ],
)
def test_each_failure_has_its_sentence(error: OSError, said: str) -> None:
    fault = os_fault("a/b", error)
    assert fault.message == said and fault.data["path"] == "a/b"
