"""When a job is due, and times and intervals as people write them."""

import re
from datetime import UTC, datetime, timedelta, tzinfo

from dragoman.engine.faults import BadInput
from dragoman.engine.ports.schedules import When

SHORTEST = 1_000  # milliseconds between two runs
LONGEST = 10 * 366 * 86_400_000
_WAITED_OUT = 3 * 3_600_000  # by which a clock may be set back without a cron expression minding
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PIECE = re.compile(r"(\d{1,9})(ms|s|m|h|d|w)")
_WHOLE = re.compile(rf"(?:{_PIECE.pattern})+")


def check(when: When) -> When:
    """The same, if it says one thing that can be done. Raises BadInput."""
    given = [bool(when.at), bool(when.every_ms), bool(when.cron)]
    if given.count(True) != 1:
        raise BadInput(
            "A schedule has one of: a time, an interval, a cron expression.",
            "Give exactly one of them.",
        )
    if when.every_ms and not SHORTEST <= when.every_ms <= LONGEST:
        raise BadInput("The interval is too short or too long.", "One second to ten years.")
    if when.at and not 0 < when.at < 253_402_300_800_000:
        raise BadInput("The time is no time of this calendar.")
    if when.tz:
        if not when.cron:
            raise BadInput("Only a cron expression has a time zone.")
        zone(when.tz)
    if when.cron:
        upcoming(when, int(datetime.now(UTC).timestamp() * 1000))
    return when


def upcoming(when: When, after: int) -> int | None:
    """The first time after a moment; None when there is none any more."""
    if when.at:
        return when.at if when.at > after else None
    if when.every_ms:
        return after + when.every_ms
    from .cron import Cron

    moment = datetime.fromtimestamp(after / 1000, zone(when.tz))
    return int(Cron(when.cron).after(moment).timestamp() * 1000)


def not_later(when: When, at: int, now: int, made: int) -> int:
    """A next time, `made` by a clock that was set back since, as the clock of now has it.

    Set back by a few hours, a cron expression waits for its time: else it would run twice.
    """
    if when.at or at <= now or (when.cron and made - now <= _WAITED_OUT):
        return at
    near = upcoming(when, now)
    return at if near is None else min(at, near)


def zone(name: str) -> tzinfo:
    """A time zone by its name; empty: this machine's."""
    if not name:
        return _HERE
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise BadInput(f"There is no time zone {name!r}.", "For example Europe/Berlin.") from None


class Here(tzinfo):
    """This machine's zone with its summer time, as the system reads TZ and /etc/localtime.

    Neither has to tell a name: TZ may hold the rule itself, and the file may be a copy.
    """

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        if at is None:
            return None
        here = at.replace(tzinfo=None)
        return here - datetime.fromtimestamp(here.timestamp(), UTC).replace(tzinfo=None)

    def dst(self, at: datetime | None) -> timedelta | None:
        return None

    def tzname(self, at: datetime | None) -> str | None:
        return None if at is None else at.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, at: datetime) -> datetime:
        return datetime.fromtimestamp(at.replace(tzinfo=UTC).timestamp()).replace(tzinfo=self)


_HERE = Here()


def interval(text: str) -> int:
    """`90s`, `15m`, `1h30m`, `2d` in milliseconds. Raises BadInput."""
    if not _WHOLE.fullmatch(text.strip()):
        raise BadInput(f"{text!r} is no interval.", "For example 90s, 15m, 1h30m, 2d.")
    long = sum(int(number) * _UNITS[unit] for number, unit in _PIECE.findall(text))
    if not long:
        raise BadInput("An interval must be longer than nothing.", "For example 90s, 15m, 1h30m.")
    return long


def moment(text: str, now: int) -> int:
    """`2026-01-31T12:00`, `12:30` (the next one), or `in 2h`, in milliseconds. Raises BadInput."""
    text = text.strip()
    if text.startswith("in "):
        return now + interval(text[3:])
    local = datetime.fromtimestamp(now / 1000, zone(""))
    clock = re.fullmatch(r"(\d{1,2}):(\d\d)", text)
    if clock is not None and int(clock[1]) < 24 and int(clock[2]) < 60:
        from .cron import Cron

        cron = Cron(f"{int(clock[2])} {int(clock[1])} * * *")
        return int(cron.after(local).timestamp() * 1000)
    try:
        found = datetime.fromisoformat(text)
        found = found if found.tzinfo else found.replace(tzinfo=local.tzinfo)
        return int(found.timestamp() * 1000)
    except (ValueError, OverflowError):  # the first and the last day are none everywhere
        hint = "For example 2026-01-31T12:00, 12:30, or: in 2h."
        raise BadInput(f"{text!r} is no time.", hint) from None


def told(when: When) -> str:
    """In words."""
    if when.cron:
        return f"{when.cron} ({when.tz})" if when.tz else when.cron
    if when.at:
        moment = datetime.fromtimestamp(when.at / 1000, zone(""))
        return f"at {moment.strftime('%Y-%m-%d %H:%M:%S %Z')}"
    rest, said = when.every_ms, ""
    for unit in ("w", "d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, _UNITS[unit])
        said += f"{count}{unit}" if count else ""
    return f"every {said}"
