"""`dragoman rpc`: the zot protocol on standard input and output."""

from ..quiet import begin


def run(words: list[str]) -> int:
    """Hand over to the server; it is imported only now."""

    def serve() -> int:
        from dragoman.stdio.zot import main

        return main(words)

    return begin(serve)
