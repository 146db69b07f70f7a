#!/usr/bin/env bash
# Puts a portable Python, for which the system has no package, into a folder and prints its path. It
# comes as a Go module (whose checksum Go verifies), with its larger files packed. Only Linux on x86-64.
#   scripts/python_from_go.sh 3.14.6-20260610-1 FOLDER
set -euo pipefail
version=$1 folder=$2 minor=$(cut -d. -f1,2 <<<"$1")
python=$folder/bin/python$minor
if [ ! -x "$python" ]; then
  go=$(command -v go || echo "$(dirname "$0")/../.venv/bin/go")
  module=$("$go" mod download -json "github.com/kluctl/go-embed-python@v0.0.0-$version" |
    sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  rm -rf "$folder" "$folder.new" && mkdir -p "$folder.new"
  cp -r "$module/python/internal/data/linux-amd64/." "$folder.new"
  chmod -R u+w "$folder.new"
  find "$folder.new" -name '*.gz' -exec gunzip {} +
  chmod +x "$folder.new"/bin/*
  mv "$folder.new" "$folder"
fi
echo "$python"
