"""What we would submit to the registry of ACP agents, against its published rules."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from dragoman import __version__

FOLDER = Path(__file__).parents[2] / "docs" / "registry"


def test_the_entry_keeps_the_rules() -> None:
    entry = json.loads((FOLDER / "agent.json").read_text())
    assert re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"])
    assert entry["name"].strip() and entry["description"].strip()
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"]) and entry["version"] == __version__
    allowed = {"id", "name", "version", "description", "distribution", "repository", "authors",
               "license", "license_url", "website", "icon"}  # fmt: skip
    assert set(entry) <= allowed
    (kind, made), *others = entry["distribution"].items()
    assert kind in ("binary", "npx", "uvx") and not others
    name, _, version = made["package"].partition("==")
    assert name == "dragoman" and version == entry["version"] and "latest" not in made["package"]
    assert made["args"] == ["acp"] and set(made) <= {"package", "cmd", "args", "env"}
    assert (FOLDER / entry["icon"]).exists()


def test_the_icon_takes_its_colour_from_where_it_is_shown() -> None:
    root = ElementTree.parse(FOLDER / "icon.svg").getroot()
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("16", "16", "0 0 16 16")
    colours = {
        one.get(key)
        for one in root.iter()
        for key in ("fill", "stroke")
        if one.get(key) is not None
    }
    assert colours <= {"currentColor", "none", "inherit"} and "currentColor" in colours
    drawn = (FOLDER / "icon.svg").read_text()
    assert "style" not in drawn and "<!--" not in drawn  # a comment breaks the registry's pages


def test_case_74_the_first_line_offers_a_way_to_authenticate(tmp_path: Path) -> None:
    params = {
        "protocolVersion": 1,
        "clientInfo": {"name": "registry", "version": "1"},
        "clientCapabilities": {"_meta": {"terminal-auth": True}},
    }
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "acp"],
        input=json.dumps(hello) + "\n", capture_output=True, text=True, timeout=60,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
    )  # fmt: skip
    method = json.loads(done.stdout.splitlines()[0])["result"]["authMethods"][0]
    assert method["id"] and method["name"] and method["type"] == "terminal"
    assert method["args"] == ["login"] and done.returncode == 0
