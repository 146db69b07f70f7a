"""Programs that speak on standard input and output."""
