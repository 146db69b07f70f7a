"""Figures in Prometheus' text format."""

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .gate import Gate


# What a client may call a method is up to the client: only these become a label of their own.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Meter:
    """Counts what no other place counts."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # (method, status)
        self.upgrades: Counter[str] = Counter()  # by dialect
        self.refusals: Counter[str] = Counter()  # by reason
        self.cost = 0.0
        self.model_calls = 0

    def answered(self, method: str, status: int) -> None:
        """A request got this status; one whose head was not understood has no method."""
        known = method if method in _METHODS else "other" if method else "none"
        self.requests[known, status] += 1

    def spent(self, cost: float) -> None:
        """A model was called, and this is what it cost."""
        self.cost += cost
        self.model_calls += 1


async def render(gate: "Gate") -> str:
    door, meter = gate.door, gate.meter
    page = _Page()
    version = door.facts.version
    page.add("dragoman_info", "gauge", "The version", [({"version": version}, 1)])
    states: Counter[str] = Counter(session.status for session in door.lives())
    page.add("dragoman_sessions", "gauge", "Sessions in memory, by status",
             _by("status", states))  # fmt: skip
    dialects = Counter(client.who.dialect for client in door.visitors.clients.values())
    page.add("dragoman_clients", "gauge", "Connected clients, by dialect",
             _by("dialect", dialects))  # fmt: skip
    waiting = len(await door.asks())
    page.add("dragoman_approvals_pending", "gauge", "Approvals that wait", [({}, waiting)])
    newest = await door.newest()
    page.add(
        "dragoman_events_total",
        "counter",
        "Events that were kept, deleted ones among them",
        [({}, newest)],
    )
    commits = door.health.commits
    page.add(
        "dragoman_store_commits_total",
        "counter",
        "Transactions of the store",
        [({}, commits)],
    )
    page.add(
        "dragoman_model_calls_total",
        "counter",
        "Model calls",
        [({}, meter.model_calls)],
    )
    page.add(
        "dragoman_cost_usd_total",
        "counter",
        "US dollars spent on models",
        [({}, meter.cost)],
    )
    page.add("dragoman_http_requests_total", "counter", "HTTP answers, by method and status",
             [({"method": method, "status": str(status)}, count)
              for (method, status), count in sorted(meter.requests.items())])  # fmt: skip
    page.add("dragoman_http_connections", "gauge", "Open HTTP connections",
             [({}, len(gate.connections))])  # fmt: skip
    page.add("dragoman_websockets_total", "counter", "WebSocket upgrades, by dialect",
             _by("dialect", meter.upgrades))  # fmt: skip
    page.add("dragoman_refusals_total", "counter", "Requests refused, by reason",
             _by("reason", meter.refusals))  # fmt: skip
    _process(page)
    return page.text()


def _by(label: str, counts: Counter[str]) -> list[tuple[dict[str, str], float]]:
    return [({label: name}, count) for name, count in sorted(counts.items())]


def _process(page: "_Page") -> None:
    import resource

    from dragoman.observe.process import resident

    usage = resource.getrusage(resource.RUSAGE_SELF)
    page.add("process_cpu_seconds_total", "counter", "Seconds of CPU time",
             [({}, round(usage.ru_utime + usage.ru_stime, 3))])  # fmt: skip
    if size := resident():
        page.add("process_resident_memory_bytes", "gauge", "Resident memory", [({}, size)])


class _Page:
    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(
        self, name: str, kind: str, says: str, values: list[tuple[dict[str, str], float]]
    ) -> None:
        self._lines.append(f"# HELP {name} {says}.")
        self._lines.append(f"# TYPE {name} {kind}")
        for labels, value in values:
            inside = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
            self._lines.append(f"{name}{{{inside}}} {value}" if inside else f"{name} {value}")

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
