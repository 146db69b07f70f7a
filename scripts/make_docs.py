"""Build the documentation site: `python scripts/make_docs.py [FOLDER]` (or `make docs`).

The pages are those of `docs/`, the project's own papers (README, CHANGELOG, ...) and the reference
that `make_reference.py` writes. What is built needs no network: the search runs in the browser.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import make_reference

ROOT = Path(__file__).parent.parent
PAPERS = (
    "README",
    "CHANGELOG",
    "CONTRIBUTING",
    "SECURITY",
    "CODE_OF_CONDUCT",
    "GOVERNANCE",
    "ROADMAP",
)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def main(target: Path) -> int:
    source = target / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "docs", source)
    for name in PAPERS:
        shutil.copy(ROOT / f"{name}.md", source / f"{name.lower()}.md")
    make_reference.main(source / "reference")
    with open(source / "decisions" / "README.md", "a") as decisions:
        decisions.write("\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n")
    with open(source / "troubleshooting.md", "a") as trouble:
        trouble.write("\n## All messages\n\nEvery one that the program has, with its way out: ")
        trouble.write("[messages](reference/messages.md).\n")
    for page in source.rglob("*.md"):
        page.write_text(inside(page, page.read_text(), source))
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    return subprocess.run([*command, str(source), str(target / "html")]).returncode


def inside(page: Path, text: str, source: Path) -> str:
    """Links to what is no page of the site become its name."""
    where = page.relative_to(source)
    home = ROOT / ("docs" / where if where.stem.upper() not in PAPERS else where.name)

    def mend(found: re.Match[str]) -> str:
        shown, target, anchor = found[1], found[2], found[3] or ""
        if re.match(r"\w+:", target) or where.parts[0] == "reference":
            return found[0]
        real = (home.parent / target).resolve()
        if real.is_relative_to(ROOT / "docs"):
            up = "../" * (len(where.parts) - 1)
            if real.is_file():
                return f"[{shown}]({up}{real.relative_to(ROOT / 'docs')}{anchor})"
        if real.parent == ROOT and real.stem in PAPERS:
            up = "../" * (len(where.parts) - 1)
            return f"[{shown}]({up}{real.stem.lower()}.md{anchor})"
        return shown if shown.startswith("`") else f"{shown} (`{real.relative_to(ROOT)}`)"

    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part if part.lstrip().startswith("```") else _LINK.sub(mend, part) for part in parts
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs")))
