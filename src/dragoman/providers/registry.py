"""The providers that are configured, found by "provider/model"."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.engine.faults import BadInput, UnknownModel
from dragoman.engine.ports import ModelInfo, Provider

from .presets import ALIASES, CATALOGUES, KINDS, LONGTAIL, PRESETS, Kind, Preset, ollama_url

if TYPE_CHECKING:
    from .catalogue import Catalogue
    from .retry import RetryRules


_KEPT = 1_000


class ProviderConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a user says about a provider. Empty fields: the preset's, or the environment's."""

    kind: Kind | None = None
    api_key: str = ""
    base_url: str = ""
    headers: dict[str, str] = {}
    models: tuple[ModelInfo, ...] = ()
    connect_timeout: float = 10.0
    first_timeout: float | None = None
    read_timeout: float = 120.0
    silence_timeout: float = 600.0
    retries: int = 5


def catalogue() -> "Catalogue":
    """The models we know; loaded when a model is first looked for."""
    from .catalogue import catalogue

    return catalogue()


class ModelRegistry:
    """Makes providers when they are first asked for, and keeps them.

    `configs` adds to and overrides the presets; a name of one's own needs a `kind`, or a
    `base_url` (then it is an OpenAI-compatible server). `env` is where keys are looked for.
    """

    def __init__(
        self,
        configs: Mapping[str, ProviderConfig] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        rules: "RetryRules | None" = None,
    ) -> None:
        self._configs = dict(configs or {})
        self._env = os.environ if env is None else env
        self._rules = rules
        self._made: dict[str, Provider] = {}
        self._offered: dict[str, tuple[Provider, tuple[ModelInfo, ...]]] = {}
        self._retired: list[Provider] = []
        # What references led to, as long as nothing is configured or offered anew.
        self._resolved: dict[tuple[str, str], tuple[Provider, ModelInfo]] = {}

    def resolve(self, ref: str, agent: str = "") -> tuple[Provider, ModelInfo]:
        """The provider and model behind "provider/model" or a model id of the catalogue.

        An agent with a key or an address of its own is given its own variant of a provider, under
        the provider's plain name: how variants are kept (`provider@agent`) is told to nobody.
        """
        found = self._resolved.get((ref, agent))
        if found is None:
            found = self._resolve(ref, agent)
            if len(self._resolved) < _KEPT:
                self._resolved[ref, agent] = found
        return found

    def _resolve(self, ref: str, agent: str) -> tuple[Provider, ModelInfo]:
        head, slash, rest = ref.strip().partition("/")
        head, _, kept = head.partition("@") if slash else (head, "", "")  # as older files have it
        agent = agent or kept
        name, model_id = self._split(f"{head}{slash}{rest}", agent)
        if name in self._offered:
            return self._resolve_offered(name, model_id)
        place = self._place(name, agent)
        preset, config = self._preset(place), self.config(place)
        model = self._model(place, model_id, preset, config)
        if model.provider != name:
            model = msgspec.structs.replace(model, provider=name)
        provider = self._provider(place, model, preset, config)
        own = getattr(provider, "model", None)  # a script or a file of weights knows its own
        return provider, own if isinstance(own, ModelInfo) else model

    def list(self, provider: str | None = None) -> Sequence[ModelInfo]:
        """The models of one provider, or of all that could be asked now."""
        if provider is None:
            return [model for name in self.names() for model in self.list(name)]
        name = self._named(provider.partition("@")[0])
        if name in self._offered:
            return self._offered[name][1]
        own = (one for one in self._configs if one.startswith(f"{name}@"))  # agents' variants of it
        place = name if self._known(name) else next(own, name)
        preset, config = self._preset(place), self.config(place)
        if preset.kind == "demo":
            from .demo import MODEL

            return (MODEL,)
        known = catalogue().list(self._source(place))
        models = {model.id: model for model in (*known, *config.models)}
        return tuple(msgspec.structs.replace(m, provider=name) for m in models.values())

    def _place(self, name: str, agent: str) -> str:
        """Where the settings are that count for this agent."""
        own = f"{name}@{agent}"
        return own if agent and own in self._configs else name

    def names(self) -> Sequence[str]:
        """Providers that have a credential, are configured, offered, or need nothing."""
        configured = dict.fromkeys(name.partition("@")[0] for name in self._configs)
        ready = [
            name
            for name, preset in PRESETS.items()
            if name in configured or any(self._env.get(key) for key in preset.env)
        ]
        ready += [name for name in configured if name not in ready]
        ready += [name for name in self._offered if name not in ready]
        return (*ready, "demo") if "demo" not in ready else tuple(ready)

    def without_key(self) -> Mapping[str, Sequence[str]]:
        """Providers that could be asked if they had a key, each with the variables for one."""
        return {name: one.env for name, one in PRESETS.items() if not self.has_credential(name)}

    def default_ref(self, env: Mapping[str, str] | None = None) -> str:
        """The model to use when none was named: a key's, a local Ollama's, or the demo."""
        env = self._env if env is None else env
        for name, preset in PRESETS.items():
            if preset.default_model and any(env.get(key) for key in preset.env):
                return f"{name}/{preset.default_model}"
        for name, config in self._configs.items():
            if config.models:
                return f"{name}/{config.models[0].id}"
            if config.api_key and (default := PRESETS.get(name, Preset("demo")).default_model):
                return f"{name}/{default}"
        from .probe import ollama_model

        found = ollama_model(ollama_url(env.get("OLLAMA_HOST", "")))
        return f"ollama/{found}" if found else "demo/demo"

    def has_credential(self, provider: str) -> bool:
        """Whether this provider could be asked, without asking it."""
        name = self._named(provider)
        if name in self._offered:
            return True
        try:
            preset = self._preset(name)
        except UnknownModel:
            return False
        config = self.config(name)
        return preset.keyless or bool(config.base_url or self._key(preset, config))

    def config(self, name: str) -> ProviderConfig:
        """A provider's settings as they are."""
        return self._configs.get(name, ProviderConfig())

    def configure_all(self, configs: Mapping[str, ProviderConfig]) -> None:
        """Use these settings of providers and no others."""
        for name in [one for one in self._configs if one not in configs]:
            del self._configs[name]
            self._retire(name)
        for name, config in configs.items():
            self.configure(name, config)

    def configure(self, name: str, config: ProviderConfig) -> None:
        """Add or change a provider's settings; streams that run keep the old ones."""
        if self._configs.get(name) == config:
            return
        self._configs[name] = config
        self._retire(name)

    def _retire(self, name: str) -> None:
        self._resolved.clear()
        for made in [key for key in self._made if key == name or key.startswith(f"{name}\n")]:
            self._retired.append(self._made.pop(made))

    def offer(self, name: str, provider: Provider, models: Sequence[ModelInfo] = ()) -> None:
        """Add a provider at run time. Without `models` it takes any model id."""
        if "/" in name or not name:
            raise BadInput(f'"{name}" is no name for a provider', "Use letters, digits and -.")
        self._offered[name] = (provider, tuple(models))
        self._resolved.clear()

    def withdraw(self, name: str) -> bool:
        """Take an offered provider away; False when there was none."""
        self._resolved.clear()
        return self._offered.pop(name, None) is not None

    async def close(self) -> None:
        """Close every provider made here; offered ones belong to those who offered them."""
        made, self._made = [*self._made.values(), *self._retired], {}
        self._retired = []
        self._resolved.clear()
        for provider in made:
            await provider.close()

    def _split(self, ref: str, agent: str) -> tuple[str, str]:
        head, slash, rest = ref.partition("/")
        name = self._named(head)
        if slash and (name in self._offered or self._known(self._place(name, agent))):
            return name, rest
        if ref == "demo":
            return "demo", "demo"
        owners = [name for name in PRESETS if catalogue().find(name, ref) is not None]
        own = [name for name in self._configs if self._configured(name, ref)]
        owners = [name for name in own if "@" not in name or name.endswith(f"@{agent}")] or owners
        if owners:
            able = (name for name in owners if self.has_credential(self._place(name, agent)))
            return next(able, owners[0]).partition("@")[0], ref
        raise self._unknown(head if slash else "", rest if slash else ref)

    def _named(self, name: str) -> str:
        """The provider that a name means: its own first, then the alias."""
        if name in self._offered or name in self._configs:
            return name
        return ALIASES.get(name, name)

    def _known(self, name: str) -> bool:
        return name in PRESETS or name in self._configs or name in LONGTAIL

    def _configured(self, name: str, model_id: str) -> bool:
        return any(model.id == model_id for model in self._configs[name].models)

    def _base(self, name: str) -> str:
        """The preset behind a name; empty when there is none."""
        if name in PRESETS:
            return name
        config = self.config(name)
        if not config.kind:
            return ALIASES.get(name, "")
        if config.kind in PRESETS or config.kind == name or config.kind not in self._configs:
            return config.kind if config.kind in PRESETS else ""
        return self._base(config.kind)

    def _preset(self, name: str) -> Preset:
        config = self._configs.get(name)
        preset = PRESETS.get(self._base(name))
        if preset is None and name in LONGTAIL:
            preset = Preset("longtail", strict=False, keyless=True)
        kind = config.kind if config is not None and config.kind in KINDS else None
        if preset is None and config is not None:
            preset = Preset(kind or "openai-chat", strict=False, keyless=True, effort="plain")
        if preset is None:
            shown = name.partition("@")[0]
            text = f'There is no provider "{shown}".'
            raise UnknownModel(text, self._providers_near(name), provider=shown)
        return msgspec.structs.replace(preset, kind=kind) if kind else preset

    def _source(self, name: str) -> str:
        """Whose list of the catalogue counts for this provider."""
        base = self._base(name)
        return CATALOGUES.get(base, base)

    def _model(self, name: str, model_id: str, preset: Preset, config: ProviderConfig) -> ModelInfo:
        for model in config.models:
            if model.id == model_id:
                return msgspec.structs.replace(model, provider=name)
        if preset.kind == "demo" and model_id == "demo":
            from .demo import MODEL

            return MODEL
        found = catalogue().find(self._source(name), model_id)
        if found is not None:
            return msgspec.structs.replace(found, provider=name)
        if model_id and (not preset.strict or config.base_url):
            return ModelInfo(
                name,
                model_id,
                context_window=preset.context_window,
                max_output=preset.max_output,
            )
        if not model_id and not preset.strict:
            shown = name.partition("@")[0]
            raise BadInput(f"{shown} needs a model", f"Name one: {shown}/MODEL.")
        raise self._unknown(name, model_id)

    def _unknown(self, name: str, model_id: str) -> UnknownModel:
        from difflib import get_close_matches

        try:
            known = [model.id for model in self.list(name)] if self._known(name) else []
        except UnknownModel:
            known = []
        if known:
            near = get_close_matches(model_id, known, 3, 0.4) or known[:3]
            hint = f"Nearest: {', '.join(near)}."
        elif name:
            hint = self._providers_near(name)
        else:
            every = [f"{m.provider}/{m.id}" for p in PRESETS for m in catalogue().list(p)]
            ids = {ref.partition("/")[2]: ref for ref in every}
            near = [ids[i] for i in get_close_matches(model_id, list(ids), 3, 0.5)]
            hint = f"Nearest: {', '.join(near)}." if near else "Write it as provider/model."
        shown = name.partition("@")[0]
        text = f'unknown model "{model_id}" (provider="{shown}")'
        return UnknownModel(text, hint, model=model_id, provider=shown)

    def _providers_near(self, name: str) -> str:
        from difflib import get_close_matches

        known = [one for one in dict.fromkeys((*PRESETS, *LONGTAIL, *self._configs, *self._offered))
                 if "@" not in one]  # fmt: skip
        near = get_close_matches(name, known, 1, 0.7)
        meant = f"Did you mean {near[0]}? " if near else ""
        return f"{meant}Known providers: {', '.join(known)}."

    def _resolve_offered(self, name: str, model_id: str) -> tuple[Provider, ModelInfo]:
        provider, models = self._offered[name]
        for model in models:
            if model.id == model_id:
                return provider, msgspec.structs.replace(model, provider=name)
        if models:
            raise self._unknown(name, model_id)
        template = getattr(provider, "model", None)
        if isinstance(template, ModelInfo):
            return provider, msgspec.structs.replace(template, provider=name, id=model_id)
        return provider, ModelInfo(name, model_id)

    def _provider(
        self, name: str, model: ModelInfo, preset: Preset, config: ProviderConfig
    ) -> Provider:
        from .build import build, slot

        key = self._key(preset, config)
        if not key and not preset.keyless and not config.base_url:
            variables = " or ".join(preset.env)
            raise BadInput(
                f"no credential for {model.provider}; set {variables}, or run: "
                f"dragoman login {model.provider} (rpc also takes --api-key)",
                provider=model.provider,
            )
        place = slot(name, model, preset, config)
        provider = self._made.get(place)
        if provider is None:
            provider = build(model.provider, model, preset, config, key, self._env, self._rules)
            self._made[place] = provider
        return provider

    def _key(self, preset: Preset, config: ProviderConfig) -> str:
        if config.api_key:
            return config.api_key
        return next((self._env[key] for key in preset.env if self._env.get(key)), "")
