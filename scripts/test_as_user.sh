#!/usr/bin/env bash
# Runs the tests that mind who runs them (tests/lane.py says which) as an ordinary user made for it,
# in a copy of this clone that is his own. `scripts/test_as_user.sh test` runs all of them.
set -euo pipefail
cd "$(dirname "$0")/.."
user=${TEST_USER:-dragoman-test}
[ "$(id -u)" = 0 ] || { echo "making a user needs root; who is none runs make test as one already" >&2; exit 1; }

id "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$user"
home=$(getent passwd "$user" | cut -d: -f6)
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin
as_user() { (cd "$home" && runuser -u "$user" -- env -u TMPDIR -u XDG_RUNTIME_DIR HOME="$home" PATH="$path" "$@"); }

# A Python that he may run: ours may be in somebody's home.
usable() { as_user "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
python=""
for one in "$(command -v "${PYTHON:-python3}")" /usr/local/bin/python3 /usr/bin/python3; do
  if [ -x "$one" ] && usable "$one"; then python=$one; break; fi
done
if [ -z "$python" ] && command -v apt-get >/dev/null; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv >/dev/null
  usable /usr/bin/python3 && python=/usr/bin/python3
fi
[ -n "$python" ] || { echo "$user may not run any Python 3.11 or newer here" >&2; exit 1; }

clone=$home/clone
echo "the tests as $user, with $("$python" --version), in $clone"
rm -rf "$clone" && mkdir "$clone"
git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - | tar -x -C "$clone"
# What has been downloaded already need not be downloaded again.
node=tests/interop/node/node_modules
[ ! -d $node ] || cp -r --preserve=timestamps,links,mode $node "$clone/$node"
cache=$(.venv/bin/python -m pip cache dir 2>/dev/null || true)
if [ -d "$cache" ]; then mkdir -p "$home/.cache" && cp -r "$cache" "$home/.cache/"; fi
cache=$(.venv/bin/uv cache dir 2>/dev/null || true)
if [ -d "$cache" ]; then mkdir -p "$home/.cache" && cp -r "$cache" "$home/.cache/uv"; fi
# Nor compiled: what Go made of its library lies where the commands of agents have it.
own=.local/state/dragoman-commands/go-build
if [ -d "$HOME/$own" ]; then mkdir -p "$home/${own%/*}" && cp -r "$HOME/$own" "$home/$own"; fi
chown -R "$user:" "$home"
# What has the machine for itself elsewhere is the same whoever runs it. At a terminal it
# matters where files and sockets are, who may have them, and how it is begun and left.
[ $# -gt 0 ] || set -- test SPARED="$(.venv/bin/python -m tests.lane)" TERMINALS="tests/tui/test_opening.py tests/tui/test_run.py tests/tui/test_ends.py tests/tui/test_typing.py tests/tui/test_clipboard.py tests/tui/test_undoing.py" ALONE="tests/daemon tests/gateway tests/sandbox tests/tools"
as_user make -C "$clone" PYTHON="$python" "$@" </dev/null ||
  as_user make -C "$clone" PYTHON="$python" test-again </dev/null
