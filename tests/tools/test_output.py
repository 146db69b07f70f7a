"""Where a command's whole output is kept; the rest is tested with `bash`."""

import gc
import os
from pathlib import Path

import pytest

from dragoman.tools.output import Capture, Outputs


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


@pytest.mark.parametrize("sign", ["é", "語", "😀"])
@pytest.mark.parametrize("after", range(4))
def test_one_long_line_is_cut_between_characters(sign: str, after: int, tmp_path: Path) -> None:
    capture = Capture(Outputs(str(tmp_path)), 1_000)
    printed = (sign * 2_000 + "x" * after).encode()
    capture.take(printed)
    head, _, rest = capture.text().partition("\n... [truncated at 1000 bytes; ")
    left, _, tail = rest.partition(" bytes left out here]\n")
    capture.discard()
    assert set(head) <= {"x", sign} and set(tail) <= {"x", sign}
    assert len(head.encode()) + int(left.replace(",", "")) + len(tail.encode()) == len(printed)
