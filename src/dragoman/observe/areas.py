"""The parts of the program that have a log of their own, for whoever names one in the settings."""

AREAS = (
    "apps", "audit", "checkpoints", "command", "daemon", "descendants", "dialect.zeroclaw", "fleet",
    "gateway", "gateway.callbacks", "gateway.push", "hooks", "host", "hosted", "mcp", "memory",
    "protocol", "schedules", "scratch", "store", "telemetry",
)  # fmt: skip
_DIALECTS = "dialect."  # those of other packages have logs, too


def is_area(name: str) -> bool:
    """Whether a log has this name, or one begins with it."""
    below = f"{name}."
    return below.startswith(_DIALECTS) or any(f"{one}.".startswith(below) for one in AREAS)
