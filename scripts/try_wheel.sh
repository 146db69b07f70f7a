#!/usr/bin/env bash
# The release as a stranger gets it: built twice with the same result, installed from wheels alone
# where no compiler is found, and tried by itself, in a folder that knows nothing of this one. What
# was built is left in build/wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
python=$PWD/.venv/bin/python
pins=$PWD/constraints.txt
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
for n in 1 2; do "$python" -m build -q -n -o "$folder/$n" . >/dev/null; done
for file in "$folder"/1/*; do cmp "$file" "$folder/2/$(basename "$file")"; done
"$python" -m venv --without-pip "$folder/venv"
CC=/bin/false CXX=/bin/false "$python" -m pip --python "$folder/venv/bin/python" install -q \
  --only-binary :all: -c "$pins" "$folder"/1/*.whl
# The list of parts is what was installed, in the same versions.
"$python" -m pip --python "$folder/venv/bin/python" list --format=json >"$folder/installed"
"$python" scripts/sbom.py --compare "$folder/installed"
# The oldest parts that we claim to work with, in a second one.
"$python" -m venv --without-pip "$folder/oldest"
mapfile -t oldest < <("$python" -c 'import tomllib
for row in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]: print(row.replace(">=", "=="))')
CC=/bin/false CXX=/bin/false "$python" -m pip --python "$folder/oldest/bin/python" install -q \
  --only-binary :all: "${oldest[@]}" "$folder"/1/*.whl
mkdir "$folder/empty" "$folder/home"
cd "$folder/empty"
for paper in man/man1/dragoman.1 bash-completion/completions/dragoman; do test -s "$folder/venv/share/$paper"; done
env -i HOME="$folder/home" PATH="$folder/venv/bin:/usr/bin:/bin" LANG=C.UTF-8 dragoman self-test
# What an ordinary user may is less than what root may: there the oldest are tried, by somebody
# without a home. He must reach our Python, though: it may be in somebody's home.
chmod 755 "$folder"
as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
if [ "$(id -u)" != 0 ] || ! "${as[@]}" env "$folder/oldest/bin/python" -c '' 2>/dev/null; then
  as=(env HOME="$folder/home")
fi
echo "with the oldest parts, as ${as[*]}:"
"${as[@]}" env -u XDG_RUNTIME_DIR PATH="$folder/oldest/bin:/usr/bin:/bin" LANG=C.UTF-8 "$folder/oldest/bin/dragoman" self-test
mkdir -p "$here/build/wheel"
cp "$folder"/1/* "$here/build/wheel/"
for file in "$folder"/1/*; do echo "built: build/wheel/$(basename "$file")"; done
