"""Dragoman: one local agent host that speaks every agent protocol."""

__version__ = "0.1.0"

# For annotations only, where a command must be quick: type checkers know it by its name. Loading
# `typing` would make `dragoman --help` take 1.8 times as long, `status` 1.13 times (decision 0073).
TYPE_CHECKING = False
