"""Keys of many services are known by their shape, wherever they stand."""

import time

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
    f"-eyJ{'a' * 1900}.{R}.{R}", f"curl -u me:{R}", f"--user={'m' * 200}:{R}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{R}\n{R}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\\n{R}\\n{R}\\nQ==\\n-----END PRIVATE KEY-----",
    f"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,00\n\n{R}\n{R}\n",
    f"-----BEGIN PRIVATE KEY-----\n     2\t{R}\n     3\t{R}-x-\n     4\t-----END PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\\n> {R}\\n> -----END PRIVATE KEY-----",
    f"https://api.telegram.org/bot123456789:{R}/getMe", f"123456789:{R[:-1]}-",
    f"tok_deadbeef_{R}", f"http://127.0.0.1:1/#enter=link_{R}", f"link_{R}", f"MY_TOKEN='{R}'",
    f"approve#ask_1a.1799999999.{R[:16]}.{'0123456789abcdef' * 4}", f"secret_key='{R}",
    f"AGE-SECRET-KEY-1{R.upper()}", f"https://hooks.slack.com/services/T0/B0/{R}",
    f"https://discord.com/api/webhooks/1234567890/{R}", f"//registry.npmjs.org/:_authToken={R}",
    f"refresh_token={R}", f"password={R}", f"api_key='{R}",
    f'api_key = "{R}"', f"password: '{R}'", f'token = "a few words {R}"', f"PASSWORD='my own {R}'",
    f'{{"password": "a horse {R}"}}', f'{{\\"passphrase\\": \\"a horse {R}\\"}}',
    *(f"{quote}{name}{quote}{sign}{quote}{R}" for quote in ('"', "'", '\\"')
      for name in ("access_token", "password", "client_secret", "apiKey") for sign in (":", ": ")),
    "dapi0123456789abcdef0123456789abcdOP".replace("OP", "ef"),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one[:12])
def test_a_key_is_hidden(shape: str) -> None:
    tail = "@host/x" if shape.startswith("https://me:") else ""
    said = scrub(f"it said {shape}{tail} and left")
    assert R not in said and R.upper() not in said and "OP" not in said and R[:16] not in said
    assert said.startswith("it said ") and said.endswith("and left") and "horse" not in said


def test_words_stay() -> None:
    for text in (
        "fw_update is a function of hf_hub", "at 12345678:30 in the log", "npm_config_x",
        "gsk_render_node_get_node_type", "hf_hub_download_with_revision",
        "fw_upload_register_device", "npm_package_dependencies_react",
        "pypi-attestation-models-verify-2",
        "pplx-embed-context-v1-multilingual", "npm_config_registry=http://127.0.0.1:4873/",
        '{"max_tokens": 4096, "token": "short", "password": null}', "tokens=123456789",
        "the tokenizer=cl100k_base", "password: it is asked for", 'the "token" was not given',
        "123456789:2026-11-18T10:00:00 it ended",
    ):  # fmt: skip
        assert scrub(text) == text
    said = scrub("a file with -----BEGIN RSA PRIVATE KEY----- was found, and the daemon went on")
    assert said.startswith("a file with ***") and said.endswith("was found, and the daemon went on")


def test_hostile_texts_take_no_time_out_of_proportion() -> None:
    """Twice as long takes about twice the time, whatever patterns it almost is."""
    began = "-----BEGIN RSA PRIVATE KEY-----"
    for piece in (f"{began}\n", f"{began}{'A' * 70}", "A" * 70 + "\n", "Proc-Type: ", "fw_a1",
                  "\\n", f"{began}\nProc-Type: x\n", f"{began} a-", "a-",
                  "12345678:", "glpat-", "xai-A", "SG.", "token", "token=", "'token':", "a.",
                  "token = '", "token='a b ", "tok_", "link_", "eyJ", "eyJ-",
                  "eyJ" + "a" * 10 + ".eyJ-", "-u=", "--user="):  # fmt: skip
        took = []
        for size in (20_000, 160_000):
            text = (began + piece * size)[:size]
            start = time.process_time()
            scrub(text)
            took.append(time.process_time() - start)
        assert took[1] < 30 * max(took[0], 0.01), (piece, took)
