"""The JSON Schema of config.toml, for editors."""

from typing import Any

import msgspec

from .model import Settings


def schema() -> dict[str, Any]:
    """The schema; unknown keys are not forbidden, because they only warn."""
    made = msgspec.json.schema(Settings)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Dragoman configuration",
        **made,
    }
