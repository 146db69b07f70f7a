"""A tool for models: how many words, letters and lines a text has.

Beside a running daemon (`dragoman daemon`), in the repository:

    .venv/bin/python examples/apps/tool.py

It finds the daemon by itself; one with a directory of its own is named by OPENCLAWOS_KERNEL_SOCKET
(`dragoman status` shows it). Agents with a real model then have the tool count_words.
"""

from dragoman.apps import App, Invocation

app = App("@examples/words", name="Words", description="Counts words")


@app.tool(kind="read")
async def count_words(text: str, call: Invocation, letters: bool = False) -> dict[str, int]:
    """Count the words of a text, and its letters if wanted."""
    call.progress("counting")
    counted = {"words": len(text.split()), "lines": len(text.splitlines())}
    if letters:
        counted["letters"] = sum(character.isalpha() for character in text)
    return counted


@app.method("words.count")
async def count(params: dict[str, str]) -> int:
    return len(params["text"].split())


if __name__ == "__main__":
    app.run()
