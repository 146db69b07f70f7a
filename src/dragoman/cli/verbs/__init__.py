"""One module per verb, imported only when that verb runs; each has `run(args) -> int`."""
