"""Parts for tests of Dragoman and of programs that talk to it."""
