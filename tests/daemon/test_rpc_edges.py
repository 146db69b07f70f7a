"""`dragoman rpc` where samples and scripts stumble: no key, no patience, odd ends, odd lines."""

import json
import os
import signal
import socket
import subprocess
import time

import pytest
from tests.daemon.test_rpc import COMMAND, Process, env, kinds, run, script
from tests.timed import promised

__all__ = ["env"]


def bash(command):
    return {"parts": [{"type": "call", "name": "bash", "args": {"command": command}}]}


def plain(env, *words, said=b'{"type":"ping"}\n', **more):
    done = subprocess.run(
        [*COMMAND, *words], input=said, env=env, capture_output=True, timeout=60, **more
    )
    return done.returncode, done.stdout, done.stderr.decode()


# --- what is needed ---


@pytest.mark.parametrize("said", [b'{"type":"ping"}\n', b'{"type":"prompt","message":"hi"}', b""])
def test_without_a_key_it_ends_as_the_document_says(env, said):
    code, out, told = plain(env, said=said)
    assert (code, out) == (1, b"") and told.startswith("zot: no credential for anthropic")
    assert "Traceback" not in told


def test_the_embedded_model_is_used_by_its_name(env, tmp_path):
    code, out, told = plain(env, "--provider", "demo", said=b'{"id":"h","type":"hello"}\n')
    assert (code, told) == (0, "") and json.loads(out)["data"]["provider"] == "demo"
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "config.toml").write_text('[agents.default]\nmodel = "demo/demo"\n')
    code, out, told = plain(env, said=b'{"id":"h","type":"hello"}\n')
    assert (code, told) == (0, "") and json.loads(out)["data"]["provider"] == "demo"


def test_a_key_of_the_environment_is_enough(env):
    env["ANTHROPIC_API_KEY"] = "k"
    code, out, told = plain(env, said=b'{"id":"h","type":"hello"}\n')
    assert (code, told) == (0, "") and json.loads(out)["data"]["provider"] == "anthropic"


@pytest.mark.parametrize("words", [(), ("--tools", "ask_user,read")])
def test_questions_are_offered_to_supervised_clients_only(env, tmp_path, words):
    turns = [
        {"parts": [{"type": "call", "name": "ask_user", "args": {"question": "why?"}}]},
        "done",
    ]
    said = '{"type":"prompt","message":"go"}\n'
    code, frames, _ = run(env, *script(tmp_path, turns), *words, said=said)
    assert code == 0 and kinds(frames)[-1] == "done" and "approval_request" not in kinds(frames)
    result = next(frame for frame in frames if frame["type"] == "tool_result")
    assert result["content"][0]["text"] == 'unknown tool "ask_user"'
    asking = Process(env, *script(tmp_path, turns), "--supervised", *words)
    asking.send(type="prompt", message="go")
    assert asking.until("approval_request")[-1]["kind"] == "question"
    assert asking.close()[0] in (0, -signal.SIGPIPE)


def test_print_mode_prints_an_answer_and_no_frames(env):
    for words in (("-p", "say hello"), ("say", "hello", "--print")):
        code, out, told = plain(env, "--provider", "demo", *words, said=b"")
        assert code == 0, told
        assert b"hello" in out.lower() and b'{"type"' not in out


def test_print_mode_needs_what_the_protocol_needs(env):
    code, out, told = plain(env, "-p", "say hello", said=b"")
    assert (code, out) == (1, b"") and told.startswith("zot: no credential for anthropic")
    words = ("--temperature", "0", "--tools", "read", "-p", "say hello")
    code, out, told = plain(env, "--provider", "demo", *words, said=b"")
    assert code == 0 and b"hello" in out.lower()
    assert [line for line in told.splitlines() if "no effect" in line] == [
        "zot: --temperature has no effect with -p", "zot: --tools has no effect with -p",
    ]  # fmt: skip


def test_print_mode_goes_to_the_address_that_is_given(env):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        words = ("--base-url", f"http://127.0.0.1:{server.getsockname()[1]}", "--api-key", "k-1")
        process = subprocess.Popen(
            [*COMMAND, *words, "-p", "hi"], stdin=subprocess.DEVNULL, env=env,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            asker, _ = server.accept()
            with asker:
                asked = asker.recv(65536)
        finally:
            process.kill()
            process.wait()
    assert asked.startswith(b"POST /v1/messages ") and b"x-api-key: k-1" in asked.lower()


def test_a_directory_as_input_is_told(env):
    folder = os.open("/", os.O_RDONLY)
    done = subprocess.run(
        [*COMMAND, "--provider", "demo"], stdin=folder, env=env, capture_output=True, timeout=60
    )
    os.close(folder)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"is a directory" in done.stderr


# --- patience ---


def test_a_refused_connection_is_tried_again_soon_and_told(env):
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    began = time.monotonic()
    words = ("--provider", "anthropic", "--api-key", "k", "--model", "claude-sonnet-4-5",
             "--base-url", f"http://127.0.0.1:{port}")  # fmt: skip
    process = Process(env, *words)
    process.send(type="prompt", message="hi")
    frames = process.until("retry")
    first = frames[-1]
    assert first["attempt"] == 1 and 0 < first["delay_ms"] <= 500 and first["message"]
    frames += process.until("done")
    took = time.monotonic() - began
    assert kinds(frames)[-3:] == ["turn_end", "error", "done"] and took < 100
    retries = [frame for frame in frames if frame["type"] == "retry"]
    assert sum(frame["delay_ms"] for frame in retries) <= 20_000
    assert process.close()[0] in (0, -signal.SIGPIPE)


# --- order and endings ---


def test_pipelined_commands_are_answered_in_order(env):
    lines = [
        {"id": "1", "type": "hello"}, {"id": "2", "type": "ping"},
        {"id": "3", "type": "get_models"},
        {"id": "4", "type": "frob"}, {"id": "5", "type": "ping"}, {"id": "6", "type": "get_state"},
        {"id": "7", "type": "prompt", "message": 5}, {"id": "8", "type": "clear"},
        {"id": "9", "type": "ping"},
    ]  # fmt: skip
    said = "\n".join(map(json.dumps, lines)).replace('{"id": "6"', '{bad\n{"id": "6"') + "\n"
    code, frames, _ = run(env, said=said)
    assert code == 0
    assert [frame.get("id", "") for frame in frames] == [*"12345", "", *"6789"]


def test_a_prompt_that_need_not_wait_is_answered_in_its_place(env):
    lines = [
        {"id": "1", "type": "prompt", "message": "say one"}, {"id": "2", "type": "get_state"},
        {"id": "3", "type": "ping"}, {"id": "4", "type": "frob"},
        {"id": "5", "type": "get_messages"},
        {"id": "6", "type": "prompt", "message": "say two"}, {"id": "7", "type": "ping"},
    ]  # fmt: skip
    said = "\n".join(map(json.dumps, lines)).replace('{"id": "4"', '{bad\n{"id": "4"') + "\n"
    code, frames, _ = run(env, "--provider", "demo", said=said)
    answers = [frame for frame in frames if frame["type"] == "response"]
    # The second prompt waits for the first, so it is answered when it starts.
    assert code == 0 and [one.get("id", "") for one in answers] == ["1", "2", "3", "", *"4576"]
    state, messages = answers[1]["data"], answers[5]["data"]["messages"]
    assert state["busy"] and state["message_count"] == 1
    assert [one["role"] for one in messages] == ["user"] and kinds(frames).count("done") == 2


def test_an_abort_right_behind_a_prompt_is_answered_after_it(env, tmp_path):
    said = "".join(
        json.dumps(line) + "\n"
        for line in (
            {"id": "p", "type": "prompt", "message": "go"}, {"id": "a", "type": "abort"},
            {"id": "c", "type": "compact"}, {"id": "s", "type": "ping"},
        )
    )  # fmt: skip
    words = script(tmp_path, [bash("sleep 300"), "done"])
    code, frames, _ = run(env, *words, said=said)
    answers = [frame["id"] for frame in frames if frame["type"] == "response"]
    assert code == 0 and answers[:2] == ["p", "a"] and sorted(answers) == ["a", "c", "p", "s"]
    assert kinds(frames).count("done") == 2 and "tool_call" not in kinds(frames)


def test_an_aborted_command_keeps_what_it_said(env, tmp_path):
    process = Process(env, *script(tmp_path, [bash("echo first; sleep 300"), "done"]))
    process.send(type="prompt", message="go")
    process.until("tool_progress")
    process.send(type="abort", id="a")
    frames = process.until("done")
    (result,) = [frame for frame in frames if frame["type"] == "tool_result"]
    text = result["content"][0]["text"]
    assert result["is_error"] and text.startswith("$ echo first; sleep 300\n\nfirst\n")
    assert "[exit -1]  Took " in text.splitlines()[-1]
    process.send(type="get_messages", id="m")
    messages = process.receive()["data"]["messages"]
    assert messages[-1]["role"] == "tool" and "first" in json.dumps(messages[-1])
    assert process.close()[0] in (0, -signal.SIGPIPE)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_hangup_ends_the_tools(env, tmp_path, number):
    work = tmp_path / "work"
    work.mkdir()
    mark = work / "pid"
    turns = [bash("echo $$ > pid; echo up; sleep 360"), "x"]
    process = Process(env, *script(tmp_path, turns), "--cwd", str(work))
    process.send(type="prompt", message="go")
    process.until("tool_progress")
    pid = int(mark.read_text())
    process.process.send_signal(number)
    assert process.process.wait(60) == -number
    limit = time.monotonic() + 60
    while os.path.exists(f"/proc/{pid}/cmdline"):
        assert time.monotonic() < limit
        time.sleep(0.02)
    process.close()


@pytest.mark.parametrize("busy", [False, True])
@promised(1.5)
def test_a_reader_that_left_is_noticed(env, tmp_path, busy, within):
    turns = [bash("echo up; sleep 360"), "x"]
    process = Process(env, *script(tmp_path, turns))
    if busy:
        process.send(type="prompt", message="go")
        process.until("tool_progress")
    else:
        process.send(type="ping", id="1")
        process.receive()
    process.process.stdout.close()
    began = time.monotonic()
    process.process.wait(60)
    assert time.monotonic() - began < within  # a second, and a moment
    process.process.stdin.close()
    assert process.process.stderr.read() == b""
    process.process.stderr.close()


def test_a_model_that_refuses_ends_with_an_error(env, tmp_path):
    turns = [{"parts": [{"type": "say", "text": "No."}], "stop": "refusal"}]
    code, frames, _ = run(env, *script(tmp_path, turns), said='{"type":"prompt","message":"x"}')
    assert code == 0 and kinds(frames)[-3:] == ["turn_end", "error", "done"]
    assert frames[-3]["stop"] == "error" and frames[-2]["message"] == frames[-3]["error"]


# --- odd lines ---


def test_names_in_any_case_down_to_the_pictures(env):
    picture = {"MIME_Type": "image/png", "Data": "aGVsbG8="}
    said = json.dumps({"type": "prompt", "Message": "look", "IMAGES": [picture]})
    code, frames, _ = run(env, said=said)
    message = next(frame for frame in frames if frame["type"] == "user_message")
    assert code == 0 and message["content"] == [
        {"text": "look", "type": "text"},
        {"bytes": 5, "mime_type": "image/png", "type": "image"},
    ]


def test_lines_nest_as_deeply_as_the_original_reads(env):
    wanted, lines = [], []
    for depth, answered in ((200, True), (5_000, True), (9_999, True), (10_000, False)):
        for opening, inner, closing in (("[", "", "]"), ('{"a":', "1", "}")):
            deep = opening * depth + inner + closing * depth
            lines += [f'{{"id":"1","type":"ping","x":{deep}}}', '{"id":"2","type":"ping"}']
            wanted += [answered, True]
    lines.append(f'{{"id":"1","type":"ping","x":{"[" * 5_000}}}')
    _, frames, _ = run(env, said="\n".join(lines) + "\n")
    assert [frame["success"] for frame in frames] == [*wanted, False]
    wrong = [frame["error"] for frame in frames if not frame["success"]]
    assert len(wrong) == 3 and all(one.startswith("malformed json: ") for one in wrong)
