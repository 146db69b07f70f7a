"""Commands that work in this process, daemon or not."""
