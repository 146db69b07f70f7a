"""The life of the process: where everything is put together."""
