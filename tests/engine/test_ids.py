"""Names that nothing else has."""

import os

from dragoman.engine.ids import token


def test_many_are_all_different_and_of_one_length() -> None:
    drawn = [token() for _ in range(1_000)]
    assert len(set(drawn)) == 1_000 and {len(one) for one in drawn} == {32}
    assert all(set(one) <= set("0123456789abcdef") for one in drawn)


def test_a_forked_process_draws_others() -> None:
    token()  # a stock is there to be shared by mistake
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, token().encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 64).decode()
    os.close(reading)
    os.close(writing)
    assert len(theirs) == 32
    assert theirs not in {token() for _ in range(200)}
