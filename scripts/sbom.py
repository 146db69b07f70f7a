"""Write the list of parts of a release (CycloneDX 1.6, JSON): what a plain install brings in.

    python scripts/sbom.py [--version VERSION] > dragoman.cdx.json
    python scripts/sbom.py --compare FILE    # with what `pip list --format=json` says of an install

The parts are the pinned dependencies of the project's own requirements, followed through the
metadata of what is installed here; digests come from constraints-hashes.txt.
"""

import argparse
import json
import re
import sys
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
# The names that classifiers and fields have for licences, in those of SPDX.
SPDX = {
    "MIT License": "MIT",
    "MIT": "MIT",
    "Apache Software License": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "ISC License (ISCL)": "ISC",
}


def name_of(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def parts(root: str = "dragoman") -> dict[str, list[str]]:
    """Every part that is needed, and what it needs itself; extras that somebody asks for, too."""
    found: dict[str, set[str]] = {}
    done: set[tuple[str, str]] = set()
    waiting = [(root, "")]
    while waiting:
        one, extra = waiting.pop()
        if (one, extra) in done:
            continue
        done.add((one, extra))
        needs = found.setdefault(one, set())
        for row in requires(one) or ():
            need = Requirement(row)
            if need.marker is not None and not need.marker.evaluate({"extra": extra}):
                continue
            name = name_of(need.name)
            needs.add(name)
            waiting += [(name, ""), *((name, wanted) for wanted in need.extras)]
    return {name: sorted(needs) for name, needs in found.items()}


def digests() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    current = ""
    for row in (ROOT / "constraints-hashes.txt").read_text().splitlines():
        if "==" in row:
            current = name_of(row.split("==")[0].strip())
        found.setdefault(current, []).extend(re.findall(r"sha256:([0-9a-f]{64})", row))
    return found


def licenses(name: str, about: Message) -> list[dict[str, object]]:
    """What a part says of its licence: an expression, or names; a part that says nothing is refused.

    Older metadata names it in classifiers, a few put the whole text into the field for its name.
    """
    if expression := about.get("License-Expression"):
        return [{"expression": expression}]
    rows = about.get_all("Classifier") or []
    named = [row.rpartition(" :: ")[2] for row in rows if row.startswith("License :: ")]
    named = [one for one in named if one != "OSI Approved"]  # which one, it does not say
    short = (about.get("License") or "").strip()
    if not named and short not in ("", "UNKNOWN") and "\n" not in short and len(short) < 60:
        named = [short]
    if not named:
        raise SystemExit(f"{name} names no licence: look it up, and do not release without.")
    known = [(SPDX.get(one), one) for one in sorted(set(named))]
    return [{"license": {"id": id} if id else {"name": one}} for id, one in known]


def document(ours: str) -> dict[str, object]:
    tree, known = parts(), digests()
    components = []
    for name in sorted(tree):
        if name == "dragoman":
            continue
        component: dict[str, object] = {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version(name)}",
            "name": name,
            "version": version(name),
            "purl": f"pkg:pypi/{name}@{version(name)}",
            "licenses": licenses(name, metadata(name)),
        }
        if name in known:
            text = f"one of {len(known[name])} files: sha256 {', '.join(sorted(known[name]))}"
            component["properties"] = [{"name": "dragoman:files", "value": text}]
        components.append(component)
    refs = {name: f"pkg:pypi/{name}@{version(name)}" for name in tree}
    refs["dragoman"] = f"pkg:pypi/dragoman@{ours}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, f'dragoman-{ours}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": refs["dragoman"],
                "name": "dragoman",
                "version": ours,
                "purl": refs["dragoman"],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [
            {"ref": refs[name], "dependsOn": [refs[need] for need in needs]}
            for name, needs in sorted(tree.items())
        ],
    }


def differences(installed: list[dict[str, str]]) -> list[str]:
    """What of an install is not among the parts, or in another version, and the other way round."""
    listed = {f"{name} {version(name)}" for name in parts() if name != "dragoman"}
    there = {f"{name_of(row['name'])} {row['version']}" for row in installed}
    there = {row for row in there if not row.startswith("dragoman ")}
    only = {
        "is installed and not listed": there - listed,
        "is listed and not installed": listed - there,
    }
    return [f"{row} {how}" for how, rows in only.items() for row in sorted(rows)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--version", help="of the release; without it, of what is installed")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="with an install")
    asked = parser.parse_args()
    try:
        if asked.compare:
            sys.exit("\n".join(differences(json.loads(asked.compare.read_text()))) or 0)
        json.dump(document(asked.version or version("dragoman")), sys.stdout, indent=1)
    except PackageNotFoundError as missing:
        sys.exit(f"{missing.name} is not installed: make setup")
    print()
