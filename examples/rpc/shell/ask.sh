#!/usr/bin/env bash
# One prompt over `dragoman rpc`, with bash and jq: ./ask.sh "list the files here"
# Text goes to stdout, tool calls and errors to stderr. Set DRAGOMAN to run another program.
set -euo pipefail

prompt="${1:?usage: ask.sh PROMPT}"

commands() {
  if [[ -n "${ZOTCORE_RPC_TOKEN:-}" ]]; then
    jq -nc --arg t "$ZOTCORE_RPC_TOKEN" '{id: "0", type: "hello", token: $t}'
  fi
  jq -nc --arg m "$prompt" '{id: "1", type: "prompt", message: $m}'
}

# The input ends after the prompt: the turn is finished, then the process leaves.
commands | ${DRAGOMAN:-dragoman} rpc |
  tee >(jq --unbuffered -r 'select(.type == "tool_call") | "[\(.name)]"' >&2) |
  jq --unbuffered -nj '
    inputs | if .type == "text_delta" then .delta
    elif .type == "done" then "\n"
    elif .type == "error" then ("error: \(.message)\n" | halt_error(1))
    elif .type == "response" and (.success | not) then ("error: \(.error)\n" | halt_error(1))
    else empty end'
