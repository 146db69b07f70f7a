"""A tool for models: how many words, letters and lines a text has.

Start it beside a running daemon:  python examples/apps/tool.py
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
