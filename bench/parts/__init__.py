"""The measures behind `make bench`, one module each."""
