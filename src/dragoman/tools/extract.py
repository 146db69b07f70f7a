"""Text out of PDFs and HTML, as a program of its own: a hostile document can only end itself.

Bytes come on standard input, text leaves as UTF-8. The first argument is `pdf` or `html`, the
second the most bytes of text that are wanted.
"""

import sys

_SECONDS = 20
_MEMORY = 1 << 30


def main() -> int:
    try:
        import resource
    except ImportError:  # not on this platform; the parent watches the clock
        pass
    else:
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    kind, most = sys.argv[1], int(sys.argv[2])
    data = sys.stdin.buffer.read()
    try:
        text = _pdf(data, most) if kind == "pdf" else _html(data)
    except (RecursionError, MemoryError):
        print("it is nested too deeply or too large", file=sys.stderr)
        return 1
    except Exception as error:  # whatever a broken document makes of its reader
        print(str(error).strip() or type(error).__name__, file=sys.stderr)
        return 1
    sys.stdout.buffer.write(text.encode("utf-8", "replace")[: most + 1])
    return 0


def _pdf(data: bytes, most: int) -> str:
    import io
    import logging

    from pypdf import PdfReader

    logging.disable(logging.CRITICAL)
    reader = PdfReader(io.BytesIO(data))
    found: list[str] = []
    size = 0
    for number, page in enumerate(reader.pages, 1):
        text = f"[page {number} of {len(reader.pages)}]\n{page.extract_text().strip()}\n"
        found.append(text)
        size += len(text)
        if size > most:
            break
    return "\n".join(found)


def _html(data: bytes) -> str:
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    page = BeautifulSoup(data, "html.parser")
    for gone in page(["script", "style", "noscript", "template", "svg", "iframe", "head"]):
        gone.decompose()
    made = MarkdownConverter(heading_style="ATX", strip=["img"]).convert_soup(page)
    lines = [line.rstrip() for line in str(made).splitlines()]
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).strip() + "\n"


if __name__ == "__main__":
    sys.exit(main())
