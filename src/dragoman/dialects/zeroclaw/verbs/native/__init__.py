"""`dragoman/*`: our own methods, for our own client and command line, on the same socket."""
