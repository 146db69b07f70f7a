"""What apps offer: found by kind and name, told to those who listen, gone when withdrawn."""

from dragoman.engine.offers import Offer, Offers


def test_offers_come_are_found_and_go() -> None:
    offers, told = Offers(), []
    offers.listeners.append(lambda offer, there: told.append((offer.id, there)))
    tool = Offer("1", "tool", "hammer", "app")
    channel = Offer("2", "channel", "hammer", "app")
    offers.add(tool)
    offers.add(channel)
    assert offers.find("tool", "hammer") is tool and offers.find("tool", "saw") is None
    assert offers.all() == [tool, channel] and offers.all("channel") == [channel]
    assert offers.remove("1") is tool and offers.remove("1") is None
    assert offers.find("tool", "hammer") is None
    assert told == [("1", True), ("2", True), ("1", False)]
