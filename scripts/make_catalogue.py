"""Make src/dragoman/providers/catalogue.json from maintained data.

Prices and context windows come from the installed package `genai-prices`; the most tokens of an
answer, reasoning and vision come from the price file inside the wheel of `litellm`. Get both with

    pip install genai-prices
    pip download --no-deps --dest DIR litellm

then run `python scripts/make_catalogue.py DIR/litellm-*.whl`.
"""

import json
import re
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "src/dragoman/providers/catalogue.json"
PRICE_FILE = "litellm/model_prices_and_context_window_backup.json"

# our name: (name in genai-prices, name in litellm, prefix of litellm's keys)
PROVIDERS = {
    "anthropic": ("anthropic", "anthropic", ""),
    "openai": ("openai", "openai", ""),
    "google": ("google", "gemini", "gemini/"),
    "openrouter": ("openrouter", "openrouter", "openrouter/"),
    "deepseek": ("deepseek", "deepseek", "deepseek/"),
    "xai": ("x-ai", "xai", "xai/"),
    "mistral": ("mistral", "mistral", "mistral/"),
    "groq": ("groq", "groq", "groq/"),
    "moonshot": ("moonshotai", "moonshot", "moonshot/"),
    "together": ("together", "together_ai", "together_ai/"),
    "fireworks": ("fireworks", "fireworks_ai", "fireworks_ai/"),
}
# Shown first, in this order; the rest follows by name.
FIRST = {
    "anthropic": ["claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-4-5"],
    "openai": ["gpt-5", "gpt-5-mini", "gpt-5-nano"],
}
# Models that both sources have dropped or never had, and that people still name.
EXTRA = {
    "moonshot": [["kimi-for-coding", "Kimi for Coding", 262144, 32768, True, True, *[None] * 4]],
}
UNWANTED = re.compile(
    r"audio|realtime|tts|image|embed|transcri|moderation|search|computer-use|deep-research|live"
    r"|whisper|dall-e|sora|lyria|robotics|guard|ocr|voxtral|instruct-0|rerank|babbage|davinci"
    r"|curie|ada\b|^ft:|container|vision-preview|veo|imagen|learnlm|gemini-exp|nano-banana|voice"
    r"|speech|bge|flux|stable-|\bsdxl|omni-flash|playai|orpheus|allam|rosalind|daybreak|cyber"
    r"|beta|experimental|-gv\d",
    re.I,
)
OLD = re.compile(
    r"^claude-(2|v1|instant|3-(haiku|opus|sonnet))|^gpt-(3|4-|4$)|^gpt-4-turbo|^text-|^o1-(mini|preview)"
    r"|^gemini-(1|pro|flash-1)|^gemma-2|^claude-[34]-.*@|^grok-(1|2|beta)|^open-mi|^mistral-tiny"
    r"|^llama2|^mixtral|^codellama|^gemma-7b|^llama-2|^llama3-",
    re.I,
)
DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|\d{4})$|-latest$|:\w+$|@")
MOST_OF_OPENROUTER = re.compile(
    r"^(anthropic|openai|google|x-ai|deepseek|moonshotai|qwen|z-ai|mistralai|meta-llama|minimax)/"
)


def main(wheel: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        limits = json.loads(archive.read(PRICE_FILE))
    from genai_prices import __version__ as prices_version
    from genai_prices.data import providers

    priced = {provider.id: provider for provider in providers}
    rows: list[str] = []
    for name, (price_name, limit_name, prefix) in PROVIDERS.items():
        rows += provider_rows(name, priced.get(price_name), limits, limit_name, prefix)
    head = {
        "date": datetime.now(UTC).date().isoformat(),
        "sources": [f"genai-prices {prices_version}", Path(wheel).name.split("-cp")[0]],
        "columns": [
            *("provider", "id", "name", "context_window", "max_output", "reasoning", "vision"),
            *("price_input", "price_output", "price_cache_read", "price_cache_write"),
        ],
    }
    fields = "".join(f'"{key}":{dense(value)},\n' for key, value in head.items())
    TARGET.write_text("{" + fields + '"models":[\n' + ",\n".join(rows) + "\n]}\n", "utf-8")
    print(f"{len(rows)} models, {TARGET.stat().st_size} bytes")


def bare(key: str) -> str:
    """A model's id without host, region, date and punctuation, to find it at other hosts."""
    name = key.lower().rpartition("/")[2].removeprefix("anthropic.").removeprefix("us.anthropic.")
    name = re.sub(r"(-v\d)?(:\d+)?$|@.*$", "", name)
    return DATED.sub("", name).replace(".", "-")


def provider_rows(
    name: str, priced: Any, limits: dict[str, Any], limit_name: str, prefix: str
) -> list[str]:
    known: dict[str, dict[str, Any]] = {}
    today = datetime.now(UTC).date().isoformat()
    for key, entry in limits.items():
        if entry.get("litellm_provider") != limit_name:
            continue
        if entry.get("mode", "chat") not in ("chat", "responses"):
            continue
        if entry.get("deprecation_date", today) < today:
            continue
        known[key.removeprefix(prefix)] = entry
    elsewhere = {
        bare(key): entry
        for key, entry in limits.items()
        if entry.get("max_output_tokens") and entry.get("mode") in ("chat", "responses")
    }
    models: dict[str, list[Any]] = {}
    for model in priced.models if priced else ():
        entry = known.get(model.id, {})
        if model.deprecated and not entry:
            continue
        if not entry.get("max_output_tokens") and (twin := elsewhere.get(bare(model.id))):
            keys = ("max_output_tokens", "supports_reasoning", "supports_vision")
            entry = {key: twin[key] for key in keys if key in twin} | entry
        model_id = f"accounts/fireworks/models/{model.id}" if name == "fireworks" else model.id
        if row := made(name, model_id, model, entry):
            models[model_id] = row
    for model_id, entry in known.items():
        if model_id in models:
            continue
        if row := made(name, model_id, None, entry):
            models[model_id] = row
    for row in EXTRA.get(name, ()):
        models.setdefault(row[0], row)
    models = {key: row for key, row in models.items() if not shadowed(key, models)}
    first = [key for key in FIRST.get(name, ()) if key in models]
    rest = sorted(key for key in models if key not in first)
    return [dense([name, *models[key]]) for key in (*first, *rest)]


def current_fireworks(model_id: str) -> bool:
    """Its list keeps every open model ever served; these families are what people still use."""
    families = (
        r"accounts/fireworks/models/(deepseek-v[34]|glm-|gpt-oss|kimi-|minimax-|qwen3)(?!.*draft)"
    )
    return re.match(families, model_id) is not None


def shadowed(key: str, models: dict[str, Any]) -> bool:
    """Whether this is a dated copy of a model that is listed without its date."""
    plain = DATED.sub("", key)
    return plain != key and plain in models


def made(provider: str, model_id: str, model: Any, entry: dict[str, Any]) -> list[Any] | None:
    if UNWANTED.search(model_id) or OLD.search(model_id):
        return None
    if provider == "google" and not re.match(r"gem(ini|ma)-", model_id):
        return None
    if provider == "fireworks" and not current_fireworks(model_id):
        return None
    if provider == "openrouter" and not (
        MOST_OF_OPENROUTER.match(model_id) and ":" not in model_id
    ):
        return None
    window = (model.context_window if model else None) or entry.get("max_input_tokens")
    window = window or entry.get("max_tokens")
    prices = prices_of(model, entry)
    if not window or window < 16_000 or prices[0] is None:
        return None
    output = entry.get("max_output_tokens") or min(int(window), 16_384)
    return [
        model_id,
        (model.name if model else None) or "",
        int(window),
        min(int(output), int(window)),
        bool(entry.get("supports_reasoning") or reasons(model_id)),
        bool(entry.get("supports_vision") or sees(model_id)),
        *prices,
    ]


def reasons(model_id: str) -> bool:
    """For models that the second source does not have."""
    name = model_id.rpartition("/")[2]
    return bool(
        re.search(
            r"^claude-(opus|sonnet|haiku|fable)-[4-9]|^claude-[4-9]|^claude-(opus|sonnet)|^gpt-[5-9]"
            r"(?!.*chat)|^o[134]|^gemini-(2\.5|[3-9])|thinking|reasoner|-r1|gpt-oss|magistral|^grok-"
            r"(3-mini|[4-9])(?!.*non-reasoning)|^kimi-k(2\.5|2\.[6-9]|[3-9])|^glm-|qwq|^deepseek-v4",
            name,
        )
    )


def sees(model_id: str) -> bool:
    name = model_id.rpartition("/")[2]
    return bool(
        re.search(r"^claude-|^gpt-(4o|4\.1|[5-9])|^gemini-|^o[134]|pixtral|-vl\b|vision", name)
    )


def prices_of(model: Any, entry: dict[str, Any]) -> list[float | None]:
    """USD per million tokens: input, output, cache read, cache write."""
    found: list[float | None] = [None] * 4
    if model is not None:
        # Some prices change with the date or the hour: the first one without a condition counts.
        prices = model.prices
        if isinstance(prices, list):
            prices = next((p for p in prices if p.constraint is None), prices[0]).prices
        names = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
        found = [plain(getattr(prices, field, None)) for field in names]
    per_token = (
        "input_cost_per_token",
        "output_cost_per_token",
        "cache_read_input_token_cost",
        "cache_creation_input_token_cost",
    )
    for index, key in enumerate(per_token):
        if found[index] is None and isinstance(entry.get(key), int | float):
            found[index] = round(entry[key] * 1_000_000, 6)
    if found[0] is not None and found[3] is None:
        found[3] = 0.0
    return found


def plain(price: Any) -> float | None:
    """The price without its tiers for long prompts."""
    price = getattr(price, "base", price)
    return None if price is None else round(float(price), 6)


def dense(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return re.sub(r"(\d)\.0(?=[,\]])", r"\1", text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
