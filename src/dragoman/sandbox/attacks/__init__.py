"""Ways out of the sandbox, tried for real and harmlessly: `dragoman doctor --attack`."""
