"""`dragoman rpc`: the zot protocol on standard input and output."""


def run(words: list[str]) -> int:
    """Hand over to the server; it is imported only now."""
    from dragoman.daemon.zot_stdio import main

    return main(words)
