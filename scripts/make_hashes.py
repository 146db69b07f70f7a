"""Writes constraints-hashes.txt: every pinned package with the digests of all its files.

With it pip refuses any file that is not one of those that were there when the pins were made:

    pip install --no-deps --require-hashes -r constraints-hashes.txt
    pip install --no-deps --no-build-isolation -e .

The digests come from the package index that pip is configured for (PIP_INDEX_URL or pip's own
configuration; the standard index otherwise), from the pages that every index has (PEP 503).
`--check` compares instead of writing: each pin must be there, under the same version.
"""

import argparse
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import httpx

ROOT = Path(__file__).parents[1]
PINS = ROOT / "constraints.txt"
HASHED = ROOT / "constraints-hashes.txt"
HEADER = "# Made by scripts/make_hashes.py from constraints.txt; do not edit.\n"
LINK = re.compile(r"""href=["'][^"'#]*?([^"'#/]+)#sha256=([0-9a-f]{64})""")


def pins(text: str) -> dict[str, str]:
    """Names, as an index writes them, and versions."""
    found = {}
    for line in text.splitlines():
        if "==" in line and not line.startswith("#"):
            name, version = line.split("==")
            found[canonical(name.strip())] = version.split()[0]
    return found


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def version_of(file: str, name: str) -> str:
    """The version in the name of a wheel or a source archive; empty for other files."""
    wheel = re.fullmatch(r"([^-]+)-([^-]+)(-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl", file)
    if wheel:
        return wheel[2]
    source = re.fullmatch(r"(.+)-([^-]+)\.(tar\.gz|zip|tar\.bz2)", file)
    return source[2] if source and canonical(source[1]) == name else ""


def digests(page: str, name: str, version: str) -> list[str]:
    """The SHA-256 of each file of one version, sorted."""
    found = {
        digest for file, digest in LINK.findall(page) if version_of(unquote(file), name) == version
    }
    if not found:
        raise SystemExit(f"the index has no file of {name} {version}")
    return sorted(found)


def index() -> str:
    """The index that pip uses here."""
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True, text=True,
    )  # fmt: skip
    if asked.returncode == 0 and asked.stdout.strip():
        return asked.stdout.strip()
    from pip._internal.models.index import PyPI

    return PyPI.simple_url


def render(found: dict[str, tuple[str, list[str]]]) -> str:
    blocks = []
    for name, (version, all_digests) in sorted(found.items()):
        lines = [f"{name}=={version}", *(f"    --hash=sha256:{one}" for one in all_digests)]
        blocks.append(" \\\n".join(lines) + "\n")
    return HEADER + "".join(blocks)


def make() -> str:
    base = index().rstrip("/")
    wanted = pins(PINS.read_text())
    with httpx.Client(headers={"Accept": "text/html"}, timeout=60, follow_redirects=True) as client:

        def one(name: str) -> list[str]:
            answer = client.get(f"{base}/{name}/")
            answer.raise_for_status()
            return digests(answer.text, name, wanted[name])

        with ThreadPoolExecutor(8) as pool:
            found = dict(zip(wanted, pool.map(one, wanted), strict=True))
    return render({name: (wanted[name], found[name]) for name in wanted})


def check() -> str:
    """What is wrong with the file as it is, in words; empty when nothing is."""
    wanted, have = pins(PINS.read_text()), pins(HASHED.read_text())
    wrong = sorted(name for name in wanted | have if wanted.get(name) != have.get(name))
    if wrong:
        return f"not as in constraints.txt: {', '.join(wrong)}. Run: python scripts/make_hashes.py"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description="Write constraints-hashes.txt.")
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    if parser.parse_args().check:
        problem = check()
        print(problem or "constraints-hashes.txt is up to date")
        return 1 if problem else 0
    HASHED.write_text(make())
    return 0


if __name__ == "__main__":
    sys.exit(main())
