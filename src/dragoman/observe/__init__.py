"""Structured logs and what must never be in them."""
