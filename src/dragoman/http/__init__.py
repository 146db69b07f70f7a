"""Asking others over HTTP: the one client of everything here that asks.

`client` is ours, on asyncio and httptools; `port` says how it may fail.
"""
