"""One prompt over `dragoman rpc`, standard library only: python ask.py "list the files here"

Text goes to stdout, the rest to stderr. Set DRAGOMAN to run another program.
"""

import json
import os
import shlex
import subprocess
import sys


def main() -> int:
    program = shlex.split(os.environ.get("DRAGOMAN", "dragoman"))
    rpc = subprocess.Popen([*program, "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert rpc.stdin and rpc.stdout

    def send(**command: object) -> None:
        rpc.stdin.write(json.dumps(command).encode() + b"\n")
        rpc.stdin.flush()

    token = os.environ.get("ZOTCORE_RPC_TOKEN")
    if token:
        send(id="0", type="hello", token=token)
    send(id="1", type="prompt", message=" ".join(sys.argv[1:]))

    status = 0
    for line in rpc.stdout:  # binary: only a newline ends a line
        event = json.loads(line)
        kind = event["type"]
        if kind == "text_delta":
            print(event["delta"], end="", flush=True)
        elif kind == "tool_call":
            print(f"[{event['name']}] {json.dumps(event['args'])}", file=sys.stderr)
        elif kind == "tool_result" and event["is_error"]:
            print("[the tool failed]", file=sys.stderr)
        elif kind == "usage":
            total = event["cumulative"]
            spent = f"{total['input']} in, {total['output']} out, ${total['cost_usd']:.4f}"
            print(f"[{spent}]", file=sys.stderr)
        elif kind == "error" or (kind == "response" and not event["success"]):
            print(f"error: {event.get('message') or event.get('error')}", file=sys.stderr)
            status = 1
        if kind == "done" or (kind == "response" and not event["success"]):
            break
    print()
    rpc.stdin.close()  # the end of input: it leaves
    rpc.stdout.close()
    return rpc.wait(timeout=5) or status


if __name__ == "__main__":
    sys.exit(main())
