"""The models we know: windows, abilities and prices. Read from a dated file on first use."""

import os
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from dragoman.engine.ports import ModelInfo

_DATED = r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4})$|-latest$"


class _File(msgspec.Struct):
    date: str
    sources: tuple[str, ...]
    columns: tuple[str, ...]
    models: list[tuple[Any, ...]]


class Catalogue:
    """Models by provider and id, in the order of the file."""

    def __init__(self, date: str, models: Sequence[ModelInfo]) -> None:
        self.date = date
        self._by_provider: dict[str, dict[str, ModelInfo]] = {}
        for model in models:
            self._by_provider.setdefault(model.provider, {})[model.id] = model

    def find(self, provider: str, model_id: str) -> ModelInfo | None:
        """The model, also by a dated or `-latest` name of it, which it then keeps."""
        models = self._by_provider.get(provider, {})
        found = models.get(model_id)
        if found is None:
            plain = re.sub(_DATED, "", model_id)
            found = models.get(plain) or models.get(f"{plain}-latest")
            if found is not None:
                found = msgspec.structs.replace(found, id=model_id)
        return found

    def list(self, provider: str) -> Sequence[ModelInfo]:
        return tuple(self._by_provider.get(provider, {}).values())

    def providers(self) -> Sequence[str]:
        return tuple(self._by_provider)


@cache
def catalogue() -> Catalogue:
    """The catalogue that came with this version."""
    # Not by importlib.resources, whose imports alone take longer than all of this.
    with open(os.path.join(os.path.dirname(__file__), "catalogue.json"), "rb") as opened:
        file = msgspec.json.decode(opened.read(), type=_File)
    models = [
        msgspec.convert(dict(zip(file.columns, row, strict=True)), ModelInfo) for row in file.models
    ]
    return Catalogue(file.date, models)
