"""Make a release: python scripts/release.py VERSION [--try]

Checks the tree, writes the version and the changelog, builds twice and compares, lists the parts,
commits and tags. `--try` does all of it in a copy and leaves nothing but what it says.
"""

import argparse
import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSION = re.compile(r"\d+\.\d+\.\d+")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version")
    parser.add_argument("--try", action="store_true", dest="trying")
    args = parser.parse_args()
    if not VERSION.fullmatch(args.version):
        parser.error(f"{args.version} is no version: MAJOR.MINOR.PATCH")
    root = ROOT
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        if args.trying:
            root = Path(folder) / "copy"
            _run("git", "clone", "-q", str(ROOT), str(root), at=ROOT)
        elif _run("git", "status", "--porcelain", at=root):
            raise SystemExit("There are changes that were not committed.")
        write(root, args.version)
        files = build(root, Path(folder))
        target = (Path(folder) if args.trying else root) / "dist"
        target.mkdir(exist_ok=True)
        for file in files:
            shutil.copy(file, target)
            print(f"{digest(file)}  {file.name}")
        parts = subprocess.run(
            [sys.executable, str(ROOT / "scripts" / "sbom.py")], check=True, capture_output=True
        ).stdout
        (target / f"dragoman-{args.version}.cdx.json").write_bytes(parts)
        if not args.trying:
            _run("git", "commit", "-qam", f"Release {args.version}", at=root)
            _run("git", "tag", "-a", f"v{args.version}", "-m", f"Dragoman {args.version}", at=root)
            print(f"Tagged v{args.version}; what is to be published is in {target}.")
    return 0


def write(root: Path, version: str) -> None:
    """Put the version into the package and the changelog."""
    home = root / "src" / "dragoman" / "__init__.py"
    text = home.read_text()
    changed = re.sub(r'__version__ = "[^"]*"', f'__version__ = "{version}"', text)
    if version not in changed:
        raise SystemExit(f"{home} names no version.")
    home.write_text(changed)
    log = root / "CHANGELOG.md"
    text = log.read_text()
    head = re.search(r"^## (.*) — unreleased$", text, re.MULTILINE)
    if head is None:
        raise SystemExit("CHANGELOG.md has no unreleased lines.")
    today = datetime.date.today().isoformat()
    log.write_text(text.replace(head[0], f"## {version} — {today}", 1))


def build(root: Path, folder: Path) -> list[Path]:
    """Build twice; the files must be the same to the last bit."""
    when = _run("git", "log", "-1", "--format=%ct", at=root)
    made = []
    for number in ("first", "second"):
        out = folder / number
        command = [sys.executable, "-m", "build", "-n", "-o", str(out), str(root)]
        env = {**os.environ, "SOURCE_DATE_EPOCH": when}
        subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL)
        made.append(sorted(out.iterdir()))
    for one, other in zip(*made, strict=True):
        if one.name != other.name or digest(one) != digest(other):
            raise SystemExit(f"{one.name} came out differently the second time.")
    return made[0]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(*words: str, at: Path) -> str:
    return subprocess.run(words, cwd=at, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
