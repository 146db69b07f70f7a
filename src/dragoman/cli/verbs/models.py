"""`dragoman models`: the models that can be used."""

import os
import sys

from dragoman.client.keys import only_here

from .. import reach, say
from ..parse import Args


def run(args: Args) -> int:
    """Print one row per model."""
    found = reach.call(args, "models", **({"provider": args.provider} if args.provider else {}))
    if say.as_json(args, found):
        return 0
    rows = [_row(row["ref"], row["model"]) for row in found["models"]]
    empty = f"no models of {args.provider}" if args.provider else "no models"
    headers = ("model", "context", "output", "$ in", "$ out", "can")
    say.table(headers, rows, spare=("can", "output", "$ in", "$ out", "context"), empty=empty)
    if lacking := found.get("without_key"):
        say.err(say.style(f"without a key: {', '.join(lacking)}", "dim", stream=sys.stderr))
    if told := only_here(found.get("key_variables", {}), os.environ, args.config_dir):
        say.warn(f"{told}.")
    return 0


def _row(ref: str, model: reach.Row) -> "tuple[object, ...]":
    can = [name for name in ("reasoning", "vision") if model.get(name)]
    return (
        ref,
        _thousands(model.get("context_window", 128_000)),
        _thousands(model.get("max_output", 8_192)),
        _price(model.get("price_input")),
        _price(model.get("price_output")),
        ", ".join(can),
    )


def _thousands(tokens: int) -> str:
    return f"{tokens // 1000}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:g}M"


def _price(value: "float | None") -> str:
    return "" if value is None else f"{value:g}"
