"""Our own protocol: `dragoman/*`, for our command line, terminal, dashboard and Python client.

It has no socket of its own: its methods are spoken on the zeroclaw dialect's connections. `answers`
is shared with `dragoman.client`, so that both sides have one set of shapes.
"""
