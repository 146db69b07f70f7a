"""Fills Homebrew's formula for a release: python scripts/formula.py SDIST --home URL > dragoman.rb

Where the release lies, its digest, and the source archive of every part that a plain install
brings, in the pinned versions. The archives come from the package index that pip is configured
for. The formula's own lines are in packaging/homebrew/dragoman.rb.
"""

import argparse
import hashlib
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import unquote, urljoin

from make_hashes import canonical, index, pins, version_of
from sbom import parts

ROOT = Path(__file__).parent.parent
NOWHERE = "https://example.org/dragoman"
LINK = re.compile(r"""href=["']([^"'#]+)#sha256=([0-9a-f]{64})""")


def fill(formula: str, source: Path, home: str, resources: str) -> str:
    """The formula of a release whose source archive is published at `home`."""
    name = re.escape(NOWHERE)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    home = home.rstrip("/")
    formula = re.sub(rf'url "{name}/[^"]*"', f'url "{home}/{source.name}"', formula)
    formula = re.sub(rf'homepage "{name}"', f'homepage "{home}"', formula)
    formula = re.sub(r'(?m)^  sha256 "[0-9a-f]{64}"', f'  sha256 "{digest}"', formula)
    return formula.replace("  def install\n", f"{resources}  def install\n", 1)


def resources(names: Iterable[str], page: Callable[[str], tuple[str, str]]) -> str:
    """A block for each part; `page` gives the address and the text of its page of the index."""
    wanted = pins((ROOT / "constraints.txt").read_text())
    blocks = []
    for name in sorted(names):
        url, digest = archive(*page(name), name, wanted[name])
        blocks.append(f'  resource "{name}" do\n    url "{url}"\n    sha256 "{digest}"\n  end\n\n')
    return "".join(blocks)


def archive(address: str, text: str, name: str, version: str) -> tuple[str, str]:
    """Where the source of one version lies, and its digest."""
    for link, digest in LINK.findall(text):
        file = unquote(link.rpartition("/")[2])
        if file.endswith(".tar.gz") and version_of(file, name) == version:
            return urljoin(address, link), digest
    raise SystemExit(f"the index has no source of {name} {version}")


def _page(name: str) -> tuple[str, str]:
    import httpx

    answer = httpx.get(
        f"{index().rstrip('/')}/{canonical(name)}/",
        headers={"Accept": "text/html"}, timeout=60, follow_redirects=True,
    )  # fmt: skip
    answer.raise_for_status()
    return str(answer.url), answer.text


def make(source: Path, home: str) -> str:
    found = resources((name for name in parts() if name != "dragoman"), _page)
    return fill((ROOT / "packaging" / "homebrew" / "dragoman.rb").read_text(), source, home, found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--home", required=True, help="where the release is published")
    asked = parser.parse_args()
    sys.stdout.write(make(asked.source, asked.home))
