"""Where a command's whole output is kept; the rest is tested with `bash`."""

import gc
import os
from pathlib import Path

import pytest

from dragoman.tools.output import Outputs


def test_a_directory_of_our_own_goes_with_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    outputs = Outputs()
    fd, name = outputs.create()
    os.close(fd)
    assert os.path.exists(name) and len(os.listdir(tmp_path)) == 1
    del outputs
    gc.collect()
    assert os.listdir(tmp_path) == []
