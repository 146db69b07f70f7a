"""Attachments, folders, branches, log lines."""

import base64
import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from tests.dialects.zeroclaw.talking import Talker, desk_of

from dragoman.dialects.zeroclaw import Settings
from dragoman.dialects.zeroclaw.verbs.git import branch
from dragoman.engine.content import Image, text_of
from dragoman.observe.feed import Feed
from dragoman.observe.log import configure, get_log
from dragoman.testing.script import Scripted

PNG = b"\x89PNG\r\n\x1a\n rest"


async def test_attach_keeps_files_once(tmp_path):
    talker = Talker(desk_of(Scripted([])))
    await talker.new(cwd=str(tmp_path))
    note = tmp_path / "note.TXT"
    note.write_text("hello")
    files = [{"path": str(note)}, {"dataB64": base64.b64encode(PNG).decode(), "filename": "p.png"}]
    kept = (await talker.ask("file/attach", {"sessionId": "s", "files": files}))["files"]
    digest = hashlib.sha256(b"hello").hexdigest()
    stored = f"{tmp_path}/uploads/{digest}.txt"
    assert kept[0] == {
        "refId": f"sha256:{digest}",
        "marker": f"[Document: note.TXT] {stored}",
        "workspacePath": stored,
        "sizeBytes": 5,
        "deduplicated": False,
    }
    assert kept[1]["marker"] == f"[IMAGE:{kept[1]['workspacePath']}]"
    assert Path(stored).read_text() == "hello" and os.stat(stored).st_mode & 0o777 == 0o600
    again = (await talker.ask("file/attach", {"session_id": "s", "files": files}))["files"]
    assert [one["deduplicated"] for one in again] == [True, True]


async def test_attachments_that_cannot_be_taken(tmp_path):
    talker = Talker(desk_of(Scripted([])))
    await talker.new(cwd=str(tmp_path))
    big = tmp_path / "big"
    big.write_bytes(b"x" * (10 * 1024 * 1024 + 1))
    good = {"dataB64": base64.b64encode(b"ok").decode()}
    for bad in (
        {},
        {"path": "relative"},
        {"path": str(tmp_path)},
        {"path": "/no/such/file"},
        {"path": str(big)},
        {"dataB64": "%%%"},
        {"dataB64": good["dataB64"], "source": "elsewhere"},
    ):
        error = await talker.refused("file/attach", {"sessionId": "s", "files": [good, bad]})
        assert error["code"] == -32602, bad
    assert not (tmp_path / "uploads").exists()  # all or none
    many = await talker.refused("file/attach", {"sessionId": "s", "files": [good] * 33})
    assert many["code"] == -32602
    unknown = await talker.refused("file/attach", {"sessionId": "nobody", "files": [good]})
    assert unknown["code"] == -32000


async def test_a_prompt_with_attachments(tmp_path):
    script = Scripted(["seen"])
    talker = Talker(desk_of(script))
    await talker.new(cwd=str(tmp_path))
    params = {
        "sessionId": "s",
        "prompt": "",
        "attachments": [{"data_b64": base64.b64encode(PNG).decode(), "mime_type": "image/png"}],
    }
    assert (await talker.ask("session/prompt", params))["content"] == "seen"
    content = script.requests[0].messages[-1].content
    assert text_of(content).startswith(f"[IMAGE:{tmp_path}/uploads/")
    assert content[1] == Image("image/png", PNG)


@pytest.mark.parametrize("slow", ["x-", "xx-", "xxx--", "x-x-", "-x-xx--", "xx--x-"])
async def test_prompts_keep_their_order_whichever_have_attachments(tmp_path, slow):
    script = Scripted([str(number) for number in range(len(slow))])
    talker = Talker(desk_of(script, settings=Settings(queue=16)))
    await talker.new(cwd=str(tmp_path))
    image = {"data_b64": base64.b64encode(PNG).decode(), "mime_type": "image/png"}
    ids = []
    for number, mark in enumerate(slow):
        more = {"attachments": [image]} if mark == "x" else {}
        ids.append(talker.say("session/prompt", {"sessionId": "s", "prompt": f"p{number}", **more}))
    assert [(await talker.answer(id))["result"]["content"] for id in ids] == [
        *map(str, range(len(slow)))
    ]
    for number, request in enumerate(script.requests):
        assert f"p{number}" in text_of(request.messages[-1].content)


async def test_list_dir(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "A.txt").write_text("12")
    (tmp_path / ".hidden").write_text("")
    (tmp_path / "broken").symlink_to("/no/such")
    talker = Talker(desk_of(Scripted([])))
    found = await talker.ask("fs/list_dir", {"path": str(tmp_path)})
    assert [one["name"] for one in found["entries"]] == ["b", "A.txt", "broken"]
    assert found["entries"][1]["size"] == 2 and found["entries"][0]["isDir"]
    found = await talker.ask("fs/list_dir", {"path": str(tmp_path), "showHidden": True})
    assert len(found["entries"]) == 4
    error = await talker.refused("fs/list_dir", {"path": str(tmp_path / "A.txt")})
    assert error["code"] == 4001


def git(folder, *words):
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)


async def test_the_branch_of_a_session(tmp_path):
    talker = Talker(desk_of(Scripted([])))
    await talker.new(cwd=str(tmp_path))
    assert await talker.ask("session/git_branch", {"sessionId": "s"}) == {"sessionId": "s"}
    repo = str(tmp_path)
    git(repo, "init", "-q", "-b", "main")
    assert branch(repo) == {"branch": "main"}
    who = ("-c", "user.name=x", "-c", "user.email=x@x")
    git(repo, *who, "commit", "-q", "--allow-empty", "-m", "one")
    found = branch(str(tmp_path))
    assert found["branch"] == "main" and len(found["hash"]) == 7
    git(repo, "pack-refs", "--all")
    assert branch(repo) == found
    git(repo, "worktree", "add", "-q", "-b", "side/a", str(tmp_path / "tree"))
    assert branch(str(tmp_path / "tree")) == {"branch": "side/a", "hash": found["hash"]}
    git(repo, "checkout", "-q", "--detach")
    assert branch(repo) == {"hash": found["hash"]}


async def test_logs_are_queried_and_followed(tmp_path):
    configure("debug", str(tmp_path / "log"))
    feed = Feed()
    try:
        log = get_log("area")
        desk = desk_of(Scripted([]))
        desk.door.facts.logs = feed
        talker = Talker(desk)
        log.debug("one", api_key="sk-secret-secret-secret")
        log.warning("two", path="/x")
        log.error("three")
        assert await talker.ask("logs/subscribe") == {"subscribed": True}
        assert await talker.ask("logs/subscribe") == {"subscribed": True}
        found = await talker.ask("logs/query", {"severityMin": 13, "limit": 1})
        assert [one["message"] for one in found["events"]] == ["three"] and not found["atEnd"]
        moment, last = found["nextCursor"]
        assert moment == found["events"][-1]["@timestamp"]
        older = {"severityMin": 13, "untilTs": moment, "untilId": last}
        more = await talker.ask("logs/query", older)
        assert [one["message"] for one in more["events"]] == ["two"] and more["atEnd"]
        first = (await talker.ask("logs/query", {"q": "ONE"}))["events"][0]
        assert first["attributes"] == {"api_key": "***"} and first["severity_number"] == 5
        got = await talker.ask("logs/get", {"id": first["id"]})
        assert got["event"] == first
        assert (await talker.refused("logs/get", {"id": "none"}))["code"] == -32602
        log.info("four")
        await talker.ask("status")
        told = [one["params"]["message"] for one in talker.seen if "params" in one]
        assert told == ["four"]  # once, though it subscribed twice
        await talker.leave(desk)
        assert not feed._followers
    finally:
        feed.close()
        configure("warning")
