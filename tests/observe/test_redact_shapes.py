"""Keys of many services are known by their shape, wherever they stand."""

import pytest

from dragoman.observe.redact import scrub

R = "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fX9aQ"  # 35 characters
SHAPES = [
    *(f"{head}{R}" for head in (
        "sk-", "sk-ant-api03-", "sk-proj-", "AIza", "ghp_", "gho_", "ghs_", "ghu_", "ghr_",
        "github_pat_", "xoxb-", "xoxp-", "xapp-", "gsk_", "hf_", "npm_", "r8_", "whsec_", "sntrys_",
        "dop_v1_", "sk_live_", "rk_test_", "glpat-", "xai-", "pypi-", "lin_api_", "tvly-", "pplx-",
        "nvapi-", "fw_", "ya29.", "12345678:", "Bearer ", "Authorization: Basic ", "x-api-key: ",
        "Cookie: ", "MY_TOKEN=", "--api-key ", "https://me:", "https://h/?token=",
    )),
    "AKIAABCDEFGHIJKLMNOP", "ASIAABCDEFGHIJKLMNOP", f"SG.{R}.{R}", f"eyJhbGciOiJIUzI1NiJ9.{R}.{R}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{R}\n{R}\n-----END RSA PRIVATE KEY-----",
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one[:12])
def test_a_key_is_hidden(shape: str) -> None:
    tail = "@host/x" if shape.startswith("https://me:") else ""
    said = scrub(f"it said {shape}{tail} and left")
    assert R not in said and "OP" not in said
    assert said.startswith("it said ") and said.endswith("and left")


def test_words_stay() -> None:
    for text in ("fw_update is a function of hf_hub", "at 12345678:30 in the log", "npm_config_x"):
        assert scrub(text) == text
