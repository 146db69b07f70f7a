"""Make a release: python scripts/release.py VERSION --home URL [--try]

Checks the tree, writes the version and the changelog, keeps a store and a configuration for later
tests, builds twice and compares, lists the parts, fills Homebrew's formula, commits and tags. The files will be published at URL. `--try` leaves
nothing but what it says.
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
    parser.add_argument("--home", required=True, help="where the files will be published")
    parser.add_argument("--try", action="store_true", dest="trying")
    args = parser.parse_args()
    if not VERSION.fullmatch(args.version):
        parser.error(f"{args.version} is no version: MAJOR.MINOR.PATCH")
    if _run("git", "status", "--porcelain", at=ROOT) and not args.trying:
        raise SystemExit("There are changes that were not committed.")
    branch = _run("git", "branch", "--show-current", at=ROOT).strip()
    if branch != "main" and not args.trying:
        raise SystemExit(f"Releases are made from main; this is {branch or 'no branch'}.")
    if _run("git", "tag", "--list", f"v{args.version}", at=ROOT):
        raise SystemExit(f"There is a tag v{args.version} already: take the next version.")
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        # Everything happens in a copy: what fails on the way leaves nothing behind here.
        copy = Path(folder) / "copy"
        _run("git", "clone", "-q", str(ROOT), str(copy), at=ROOT)
        for key in ("user.name", "user.email"):
            _run("git", "config", key, _run("git", "config", key, at=ROOT), at=copy)
        write(copy, args.version)
        keep(copy)
        _run("git", "add", "-A", at=copy)
        # Committed before it is built: whoever builds the tag anew has the same date in it.
        _run("git", "commit", "-qm", f"Release {args.version}", at=copy)
        _run("git", "tag", "-a", f"v{args.version}", "-m", f"Dragoman {args.version}", at=copy)
        files = build(copy, Path(folder))
        target = (Path(folder) if args.trying else ROOT) / "dist"
        target.mkdir(exist_ok=True)
        for file in files:
            shutil.copy(file, target)
            print(f"{digest(file)}  {file.name}")
        beside(copy, args.version, files, target, args.home)
        if not args.trying:
            _run("git", "pull", "-q", "--ff-only", "--tags", str(copy), "HEAD", at=ROOT)
            print(f"Tagged v{args.version}; what is to be published is in {target}.")
    return 0


def beside(root: Path, version: str, files: list[Path], target: Path, home: str) -> None:
    """What is published beside the two files: the list of parts, the formula with all it needs."""
    parts = [sys.executable, str(root / "scripts" / "sbom.py"), "--version", version]
    made = subprocess.run(parts, check=True, capture_output=True).stdout
    (target / f"dragoman-{version}.cdx.json").write_bytes(made)
    (source,) = (file for file in files if file.name.endswith(".tar.gz"))
    formula = [sys.executable, str(root / "scripts" / "formula.py"), str(source), "--home", home]
    made = subprocess.run(formula, check=True, stdout=subprocess.PIPE).stdout
    (target / "dragoman.rb").write_bytes(made)


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
    entry = root / "docs" / "registry" / "agent.json"
    text = re.sub(r'("version": )"[^"]*"', rf'\g<1>"{version}"', entry.read_text())
    entry.write_text(re.sub(r'("dragoman==)[^"]*"', rf'\g<1>{version}"', text))
    debian = root / "packaging" / "debian" / "changelog"
    text = debian.read_text()
    if not text.startswith(f"dragoman ({version}-"):
        (who,) = re.findall(r"(?m)^ -- (.*>)  ", text)[:1]
        when = datetime.datetime.now(datetime.UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
        entry = f"  * Version {version}; CHANGELOG.md says what is new.\n\n -- {who}  {when}\n\n"
        debian.write_text(f"dragoman ({version}-1) unstable; urgency=medium\n\n{entry}{text}")


def keep(root: Path) -> None:
    """Keep a store and a configuration of this version for the tests of later ones."""
    env = {**os.environ, "PYTHONPATH": str(root / "src")}  # the copy's version, not ours
    command = [sys.executable, str(root / "scripts" / "keep_store.py")]
    subprocess.run(
        command, check=True, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


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
