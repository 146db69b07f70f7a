"""Who is connected, by name or only as a connection."""

from dragoman.engine.events import Who
from dragoman.engine.ids import WallClock
from dragoman.engine.visitors import Visitors


class Connection:
    def __init__(self, id: str) -> None:
        self.who = Who("test", id=id)


def test_all_who_come_are_there_until_they_go() -> None:
    visitors, told = Visitors(WallClock()), []
    visitors.on_change.append(lambda: told.append(sorted(visitors.clients)))
    one = Connection("a")
    visitors.enter(one)
    visitors.arrive(Who("test", id="b"))
    visitors.arrive(Who("test", name="renamed", id="a"))
    assert visitors.clients["a"].who.name == "renamed"
    visitors.exit(one, one.who)
    visitors.leave(Who("test", id="b"))
    visitors.leave(Who("test", id="nobody"))
    visitors.exit(Connection("stranger"))
    assert told == [["a"], ["a", "b"], ["a", "b"], ["b"], [], [], []]
