"""The command line: a table of commands, a small parser, one module per verb."""
