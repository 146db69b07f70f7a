"""Flags that several commands have."""

from ..parse import Flag

MODES = ("readonly", "supervised", "full")
EFFORTS = ("off", "minimum", "low", "medium", "high", "xhigh", "max")

CONFIG_DIR = Flag("config-dir", "directory of config.toml; data goes to its data/", metavar="DIR")
JSON = Flag("json", "print JSON for programs", kind=bool)
AGENT = Flag("agent", "the agent to use", metavar="ALIAS")
COMMON = (CONFIG_DIR, JSON)
