#!/usr/bin/env bash
# The recipes of packages, held to their systems' own rules: the container's and Homebrew's are
# linted, Debian's is built, linted, unpacked, tried and left in build/debian. What is missing is installed as root.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
missing=""
for tool in lintian rubocop dh; do
  command -v $tool >/dev/null || missing="$missing ${tool/#dh/debhelper}"
done
if [ -n "$missing" ]; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || { echo "please install:$missing" >&2; exit 1; }
  apt-get -o DPkg::Lock::Timeout=300 update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $missing >/dev/null
fi
.venv/bin/hadolint packaging/Containerfile
rubocop packaging/homebrew/dragoman.rb
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# As a release fills it in.
echo nothing >"$folder/dragoman-0.0.0.tar.gz"
.venv/bin/python scripts/formula.py "$folder/dragoman-0.0.0.tar.gz" --home https://dragoman.example >"$folder/dragoman.rb"
rubocop -c packaging/homebrew/.rubocop.yml "$folder/dragoman.rb"
mkdir "$folder/tree" "$folder/home"
git ls-files -z | tar -c --null -T - | tar -x -C "$folder/tree"
cp -r packaging/debian "$folder/tree/debian"
# pip is ours: the recipe names Debian's own.
(cd "$folder/tree" && PATH="$OLDPWD/.venv/bin:$PATH" dpkg-buildpackage -us -uc -b -d >"$folder/log" 2>&1) ||
  { tail -40 "$folder/log" >&2; exit 1; }
lintian --allow-root --fail-on error,warning "$folder"/*.changes
dpkg-deb -x "$folder"/*.deb "$folder/unpacked"
cd "$folder/home"
env -i HOME="$folder/home" PATH="$folder/unpacked/usr/bin:$OLDPWD/.venv/bin:/usr/bin:/bin" LANG=C.UTF-8 dragoman self-test
mkdir -p "$here/build/debian"
cp "$folder"/*.deb "$here/build/debian/"
for file in "$folder"/*.deb; do echo "built: build/debian/$(basename "$file")"; done
