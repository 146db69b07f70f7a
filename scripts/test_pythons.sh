#!/usr/bin/env bash
# Runs the tests of the core with every Python, other than ours, that we claim and that is here.
set -uo pipefail
cd "$(dirname "$0")/.."
ours=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
areas="tests/engine tests/wire tests/store tests/settings tests/client tests/tools tests/schedules"
# Long tests of what no Python changes: random rows and searches against a model, texts of keys, memory.
left="store/test_differential tools/test_hostile tools/test_search_random settings/test_shape settings/test_write engine/test_figures"
ignored=""; for one in $left; do ignored="$ignored --ignore=tests/$one.py"; done
failed="" ran="" missing=""

find_python() {  # prints an interpreter of this version that really runs
  for one in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python3 "build/python-$1/bin/python$1"; do
    if "$one" -c "import sys, sqlite3, ssl, ctypes, venv; sys.exit(sys.version_info[:2] != tuple(map(int, '$1'.split('.'))))" 2>/dev/null; then
      command -v "$one"; return
    fi
  done
}

# What failed beside others is tried once more alone, as with our own Python.
run() {  # version: its tests; what they say ends up in one piece
  local python=.venv-$1/bin/python
  echo "Python $($python -c 'import platform; print(platform.python_version())')"
  $python scripts/prepare_tests.py ${T:-$areas}
  local test="$python -m pytest -q -rs -o cache_dir=.venv-$1/.pytest_cache"
  $test -m "not local and not alone and not slow" -n "$workers" --dist loadfile --no-loadscope-reorder ${T:-$areas $ignored} ||
    $test --last-failed --last-failed-no-failures none ${T:-$areas}
}

for version in ${PYTHONS:-3.11 3.12 3.13 3.14}; do
  [ "$version" = "$ours" ] && continue
  python=$(find_python $version)
  # Where no package has it, a module of Go's does.
  if [ -z "$python" ] && [ "$version" = 3.14 ] && [ "$(uname -sm)" = "Linux x86_64" ]; then
    scripts/python_from_go.sh 3.14.6-20260610-1 build/python-3.14 >/dev/null && python=$(find_python 3.14)
  fi
  if [ -z "$python" ]; then missing="$missing $version"; continue; fi
  venv=.venv-$version
  if [ pyproject.toml -nt $venv/.stamp ] || [ constraints.txt -nt $venv/.stamp ]; then
    { test -x $venv/bin/python || "$python" -m venv --without-pip $venv; } &&
      scripts/install.sh $venv/bin/python '.[mcp,providers,test]' &&
      touch $venv/.stamp || { failed="$failed $version(setup)"; continue; }
  fi
  ran="$ran $version"
done

# All of them at once: tests wait as much as they compute.
workers=${WORKERS:-$([ "$(wc -w <<<"$ran")" -gt 1 ] && echo 2 || echo 4)}
logs=$(mktemp -d)
declare -A running
for version in $ran; do run $version >"$logs/$version" 2>&1 & running[$version]=$!; done
for version in $ran; do
  wait "${running[$version]}" || failed="$failed $version"
  cat "$logs/$version"
done
rm -r "$logs"
echo "ran with:${ran:- none but ours ($ours)}${missing:+; not here, so not run:$missing}"
[ -z "$failed" ] || { echo "failed with:$failed" >&2; exit 1; }
