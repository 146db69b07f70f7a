"""Words and bounds of OpenTelemetry's conventions for generative models, as far as we use them."""

import re

# Our names of providers that the conventions know by another; all others keep ours.
PROVIDERS = {
    "google": "gcp.gemini",
    "gemini": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "google-vertex": "gcp.vertex_ai",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "grok": "x_ai",
    "moonshot": "moonshot_ai",
    "moonshotai": "moonshot_ai",
    "kimi": "moonshot_ai",
    "claude": "anthropic",
}
FINISHES = {
    "end_turn": "stop",
    "tool_use": "tool_call",
    "length": "length",
    "refusal": "content_filter",
    "error": "error",
    "aborted": "aborted",  # the conventions have no word for these two
    "max_steps": "max_steps",
}
OTHER = "_OTHER"

# Upper bounds of histograms' buckets, in seconds; those of agents, calls and tokens are given.
CALL_SECONDS = [0.01 * 2**n for n in range(14)]
TURN_SECONDS = [0.1 * 2**n for n in range(13)]
WAIT_SECONDS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400]
TOKENS = [4**n for n in range(14)]

_SORT = re.compile(r"\w{1,60}")
_PATH = re.compile(r"[/~.\\]|[A-Za-z]:[/\\]|.*\.gguf$", re.IGNORECASE | re.DOTALL)
_FILES = frozenset({"local", "scripted"})  # providers whose models are files


def model_of(ref: str) -> dict[str, str]:
    """Provider and model of "provider/model", as attributes; empty when there is none."""
    provider, slash, model = ref.partition("/")
    if not slash:
        return {"gen_ai.request.model": ref} if ref else {}
    provider = provider.partition("@")[0]
    if provider in _FILES or _PATH.match(model):  # where it lies is nobody's business
        model = model.replace("\\", "/").rpartition("/")[2]
    return {
        "gen_ai.provider.name": PROVIDERS.get(provider, provider),
        "gen_ai.request.model": model,
    }


def error_type(fault: str) -> str:
    """A sort of error as figures may have it: a word, never a sentence."""
    return fault if _SORT.fullmatch(fault) else OTHER
