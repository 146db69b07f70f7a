"""Which models can be used: those that providers list, and those that agents are set to."""

from collections.abc import Sequence
from contextlib import suppress

from .faults import Fault, UnknownModel
from .ports import Agents, ModelInfo, Models


def usable(models: Models, agents: Agents, provider: str | None = None) -> Sequence[ModelInfo]:
    """The models of one provider or of all, those of the agents also where no list has them."""
    own = [model for model in _own(models, agents) if provider in (None, model.provider)]
    try:
        listed = list(models.list(provider))
    except UnknownModel:
        if not own:
            raise
        listed = []
    known = {model.ref for model in listed}
    return listed + [model for model in own if model.ref not in known]


def _own(models: Models, agents: Agents) -> Sequence[ModelInfo]:
    """What the agents are configured with, each once."""
    found: dict[str, ModelInfo] = {}
    for alias in agents.names():
        with suppress(Fault):  # not usable as it is configured
            model = models.resolve(agents.profile(alias).model, alias)[1]
            found.setdefault(model.ref, model)
    return tuple(found.values())
