"""Dragoman: one local agent host that speaks every agent protocol."""

__version__ = "0.1.0"
