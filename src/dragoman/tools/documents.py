"""Documents as text: PDFs and HTML by a program of its own, notebooks by their cells."""

import asyncio
import os
import sys
from typing import Any

import msgspec

from dragoman.engine.faults import BadInput

from .work import started

_PROGRAM = os.path.join(os.path.dirname(__file__), "extract.py")
_SECONDS = 30.0
_OUTPUT = 4_000  # characters of one output of a cell


async def extracted(kind: str, data: bytes, most: int, shown: str) -> str:
    """The text of a document; raises BadInput when it cannot be read."""
    starting = asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-B", "-X", "utf8", _PROGRAM, kind, str(most)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={},
        start_new_session=True,
    )
    try:
        async with started(starting) as process, asyncio.timeout(_SECONDS):
            said, errors = await process.communicate(data)
    except TimeoutError:
        raise BadInput(f"{shown}: reading it took longer than {_SECONDS:g} s.") from None
    if process.returncode != 0:
        why = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it took too long"]
        raise BadInput(f"{shown} cannot be read as {kind.upper()}: {why[0][:300]}.")
    return said.decode("utf-8", "replace")


def notebook(data: bytes, shown: str) -> str:
    """The cells of a Jupyter notebook with what they printed."""
    try:
        found = msgspec.json.decode(data)
        cells = found["cells"]
        if not isinstance(cells, list):
            raise TypeError
    except (msgspec.DecodeError, KeyError, TypeError, RecursionError):
        raise BadInput(f"{shown} is no notebook: it has no list of cells.") from None
    parts = []
    for number, cell in enumerate(cells, 1):
        if isinstance(cell, dict):
            kind = str(cell.get("cell_type", "cell"))
            parts.append(f"[{number}: {kind}]\n{_joined(cell.get('source')).rstrip()}\n")
            outputs = cell.get("outputs")
            for output in outputs if isinstance(outputs, list) else ():
                said = _output(output)
                if said:
                    parts.append(f"[output of {number}]\n{said}\n")
    return "\n".join(parts) or "[the notebook is empty]\n"


def _output(output: Any) -> str:
    if not isinstance(output, dict):
        return ""
    data = output.get("data")
    text = _joined(output.get("text"))
    if isinstance(data, dict):
        text = text or _joined(data.get("text/plain"))
        pictures = [name for name in data if str(name).startswith("image/")]
        text += f"\n[{', '.join(map(str, pictures))}]" if pictures else ""
    if "ename" in output:
        text = f"{output.get('ename')}: {output.get('evalue')}"
    text = text.strip()
    return text if len(text) <= _OUTPUT else text[:_OUTPUT] + "…"


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return "".join(str(part) for part in value)
    return value if isinstance(value, str) else ""
