"""Backends that take turns: the built-in loop, and other agents hosted as processes."""
