"""How a turn ended, as an exit code."""

SHORT = 3  # the turn completed, but its answer is not the whole one that a script takes it for


def exit_code(outcome: str, stop: str = "") -> int:
    """0 completed, 1 failed, 3 the model refused or its answer was cut, 130 stopped."""
    if outcome == "completed":
        return SHORT if stop in ("refusal", "length") else 0
    return 1 if outcome == "failed" else 130
