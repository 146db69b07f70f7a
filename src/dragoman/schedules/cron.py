"""Cron expressions of five fields: minute, hour, day of month, month, day of week."""

from datetime import UTC, datetime, timedelta, tzinfo

from dragoman.engine.faults import BadInput

_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 7),
)
_NAMES = {
    3: "jan feb mar apr may jun jul aug sep oct nov dec".split(),
    4: "sun mon tue wed thu fri sat".split(),
}
_SHORT = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_OVERLAP = timedelta(hours=3)  # no zone puts its clocks back by more
_NONE = timedelta(0)
_YEARS = 9  # the 29th of February is never further away than eight
_HINT = 'Write five fields, for example "30 7 * * mon-fri".'


class Cron:
    """One expression. When both days are restricted, either is enough, as cron has it."""

    def __init__(self, text: str) -> None:
        parts = _SHORT.get(text.strip().lower(), text).split()
        if len(parts) != len(_FIELDS):
            raise BadInput(f"{text!r} is no cron expression.", _HINT)
        fields = [_field(at, part) for at, part in enumerate(parts)]
        self._minutes, self._hours, self._days, self._months, weekdays = fields
        self._weekdays = frozenset(day % 7 for day in weekdays)
        self._either = not parts[2].startswith("*") and not parts[4].startswith("*")

    def after(self, moment: datetime) -> datetime:
        """The first time after a moment, in its time zone. Raises BadInput when there is none."""
        zone: tzinfo | None = moment.tzinfo
        every = len(self._hours) == 24
        if every and (again := self._in_overlap(moment)) is not None:
            return again
        at = moment.replace(tzinfo=None, second=0, microsecond=0) + timedelta(minutes=1)
        last = at.year + _YEARS
        while at.year < last:
            if at.month not in self._months:
                at = (at.replace(day=1, hour=0, minute=0) + timedelta(days=32)).replace(day=1)
            elif not self._is_day(at):
                at = at.replace(hour=0, minute=0) + timedelta(days=1)
            elif at.hour not in self._hours:
                at = at.replace(minute=0) + timedelta(hours=1)
            elif at.minute not in self._minutes:
                at += timedelta(minutes=1)
            else:
                found = at.replace(tzinfo=zone)
                if every and found.timestamp() <= moment.timestamp():
                    found = found.replace(fold=1)
                if found.timestamp() > moment.timestamp():  # clocks are put back now and then
                    return found
                at += timedelta(minutes=1)
        raise BadInput("This cron expression names a day that never comes.", _HINT)

    def _in_overlap(self, moment: datetime) -> datetime | None:
        """The next time of one that runs every hour, while clocks are being put back.

        The hour that comes twice is two hours to it; what names an hour runs in the first alone.
        """
        soon = moment.astimezone(UTC)
        end = (soon + _OVERLAP).astimezone(moment.tzinfo)
        if (end.utcoffset() or _NONE) >= (moment.utcoffset() or _NONE):
            return None
        at = moment.replace(second=0, microsecond=0).astimezone(UTC)
        while at < soon + _OVERLAP:
            at += timedelta(minutes=1)
            here = at.astimezone(moment.tzinfo)
            if here.minute in self._minutes and here.month in self._months and self._is_day(here):
                return here
        return None

    def _is_day(self, at: datetime) -> bool:
        of_month, of_week = at.day in self._days, (at.weekday() + 1) % 7 in self._weekdays
        return of_month or of_week if self._either else of_month and of_week


def _field(at: int, text: str) -> frozenset[int]:
    name, low, high = _FIELDS[at]
    found: set[int] = set()
    for piece in text.split(","):
        span, slash, step = piece.partition("/")
        first, dash, last = span.partition("-")
        try:
            begin = low if span == "*" else _number(at, first)
            end = high if span == "*" or (slash and not dash) else begin
            end = _number(at, last) if dash else end
            by = int(step) if slash else 1
        except ValueError:
            begin, end, by = 0, -1, 1
        if not (low <= begin <= end <= high and by > 0):
            raise BadInput(f"{piece!r} is no {name} of a cron expression.", _HINT)
        found.update(range(begin, end + 1, by))
    return frozenset(found)


def _number(at: int, text: str) -> int:
    names = _NAMES.get(at, [])
    word = text.lower()[:3]
    if word in names and text.isalpha():
        return names.index(word) + (1 if at == 3 else 0)
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)
