"""A fault on its way to another process, and there again."""

from typing import Any

import msgspec

from . import faults
from .events import Who
from .faults import Fault

_FAULTS: dict[str, type[Fault]] = {
    one.code: one
    for one in vars(faults).values()
    if isinstance(one, type) and issubclass(one, Fault)
}


class CarriedFault(msgspec.Struct, frozen=True):
    """What another process needs to raise it again."""

    code: str
    message: str
    hint: str
    by: Who | None = None
    data: dict[str, Any] = {}


def refusal_of(fault: Fault) -> CarriedFault:
    plain = (str, int, float, bool, type(None))
    data = {name: value for name, value in fault.data.items() if isinstance(value, plain)}
    by = fault.data.get("by")
    who = by if isinstance(by, Who) else None
    return CarriedFault(fault.code, fault.message, fault.hint, who, data)


def fault_of(refusal: CarriedFault) -> Fault:
    """The fault as it was raised where the session is."""
    kind = _FAULTS.get(refusal.code, Fault)
    fault = kind.__new__(kind)
    Fault.__init__(fault, refusal.message, refusal.hint, **refusal.data)
    if refusal.by is not None:
        fault.data["by"] = refusal.by
    return fault
