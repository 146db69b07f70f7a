"""What a model is told of each built-in tool. The code behind it is read with its first call."""

from typing import Any

from dragoman.engine.info import PROPOSE
from dragoman.engine.ports import ToolSpec

from .args import flag, schema, text, whole

MAX_CHOICES = 20  # of a question
MAX_CONTEXT = 20  # lines around a match
MAX_ENTRIES = 500  # names of a directory
MAX_MATCHES = 500
MAX_STEPS = 100  # of a plan
URGENCIES = ("low", "medium", "high", "critical")


def _choices(description: str) -> dict[str, Any]:
    texts = {"type": "array", "items": {"type": "string"}, "maxItems": MAX_CHOICES}
    return {**texts, "description": description}


ASK_USER = ToolSpec(
    name="ask_user",
    description=(
        "Ask the human a question and wait for the answer. Give choices when there are a few "
        "clear ones. Use it only when you cannot go on without knowing."
    ),
    schema=schema(
        "question",
        question=text("The question, with all that is needed to answer it."),
        choices=_choices("Possible answers, when there are a few."),
    ),
    kind="other",
    repeatable=True,
)

BASH = ToolSpec(
    name="bash",
    description=(
        "Run a shell command in the working directory. Output and errors come together. Only "
        "the beginning and the end of a long output are shown; a file keeps all of it. It is "
        "ended after 2 minutes unless timeout says otherwise, with all it left behind. With "
        "background it goes on until bash_kill or the end of the session."
    ),
    schema=schema(
        "command",
        command=text("The command line, for bash (sh where there is no bash)."),
        timeout=whole("Seconds after which the command is ended (at most 600)."),
        background=flag("Return at once; see bash_output. For servers and watchers."),
    ),
    kind="execute",
)

BASH_KILL = ToolSpec(
    name="bash_kill",
    description="End a background command and all it started.",
    schema=schema("id", id=text("Its id, such as bg1.")),
    kind="other",
)

BASH_OUTPUT = ToolSpec(
    name="bash_output",
    description=(
        "What a background command has printed since you last looked, and whether it still "
        "runs. Without id: all of them."
    ),
    schema=schema(
        id=text("Its id, such as bg1."),
        wait=whole("Seconds to wait for its end or for output (at most 60).", 0),
    ),
    kind="read",
    repeatable=True,
)

EDIT = ToolSpec(
    name="edit",
    description=(
        "Change a text file by exact replacements. Every oldText must occur exactly once in "
        "the file as it is now; the edits are applied all together or not at all."
    ),
    schema=schema(
        "path",
        "edits",
        path=text("File to change, absolute or relative to the working directory."),
        edits={
            "type": "array",
            "minItems": 1,
            "description": "Replacements that do not overlap.",
            "items": schema(
                "oldText",
                "newText",
                oldText=text("Text to replace, exactly as in the file, unique in it."),
                newText=text("Text to put in its place."),
            ),
        },
    ),
    kind="edit",
)

ESCALATE = ToolSpec(
    name="escalate_to_human",
    description=(
        "Hand a matter to the human that you must not decide, and wait for what they say. Use "
        "it when something looks dangerous, wrong, or beyond what you were asked to do."
    ),
    schema=schema(
        "summary",
        summary=text("What the matter is, in a sentence or two."),
        context=text("What is known: what you did, saw and ruled out."),
        urgency={"type": "string", "enum": list(URGENCIES)},
        choices=_choices("Ways to go on; without them: go on, or stop."),
    ),
    kind="other",
    repeatable=True,
)

GLOB = ToolSpec(
    name="glob",
    description=(
        "Find files by pattern, the newest first; directories when no file matches or the "
        "pattern ends with /. * and ? match within a name, ** any number of directories, "
        "{a,b} either. What .gitignore leaves out, node_modules and the like are not "
        "searched; links are not followed."
    ),
    schema=schema(
        "pattern",
        pattern=text("For example src/**/*.py"),
        path=text("Directory to start from; the working directory when left out."),
        ignored=flag("Search what is ignored too."),
    ),
    kind="search",
    repeatable=True,
)

GREP = ToolSpec(
    name="grep",
    description=(
        "Search files for a regular expression (Python syntax), line by line. Results read "
        "path:line: text, newest files first. What .gitignore leaves out, node_modules and the "
        "like, binary files, files over 16 MiB and links are not searched."
    ),
    schema=schema(
        "pattern",
        pattern=text("Regular expression."),
        path=text("File or directory to search; the working directory when left out."),
        glob=text("Only files like this, for example *.py or src/**/*.{ts,tsx}"),
        ignore_case=flag("Take upper and lower case as the same."),
        context=whole(f"Lines to show before and after (at most {MAX_CONTEXT}).", 0),
        ignored=flag("Search what is ignored too."),
        limit=whole(f"How many matches at most (default 200, maximum {MAX_MATCHES})."),
    ),
    kind="search",
    repeatable=True,
)

LS = ToolSpec(
    name="ls",
    description=(
        "List a directory, sorted by name. Directories end with /, links with @, programs with *."
    ),
    schema=schema(
        path=text("Directory to list; the working directory when left out."),
        limit=whole(f"How many names at most (default and maximum {MAX_ENTRIES})."),
    ),
    kind="read",
    repeatable=True,
)

PLAN = ToolSpec(
    name="plan",
    description=(
        "Show the human your plan as a list of steps, and keep it up to date: every call "
        "replaces the whole list. Have at most one step in progress."
    ),
    schema=schema(
        "entries",
        entries={
            "type": "array",
            "maxItems": MAX_STEPS,
            "items": schema(
                "content",
                content=text("What is to be done."),
                priority={"type": "string", "enum": ["high", "medium", "low"]},
                status={"type": "string", "enum": ["pending", "in_progress", "completed"]},
            ),
        },
    ),
    kind="think",
    repeatable=True,
)

PROPOSE_PLAN = ToolSpec(
    name=PROPOSE,
    description=(
        "Show the plan file to the human and ask whether to go on with it. Call it when the "
        "plan is ready; its result says whether you may begin."
    ),
    schema=schema(),
    kind="think",
    repeatable=True,
)

READ = ToolSpec(
    name="read",
    description=(
        "Read a text file by lines, the text of a PDF, the cells of a notebook, or look at a "
        "picture (png, jpg, gif, webp). At most 2000 lines or 50 KiB come at once; the end of "
        "the result says how to read on."
    ),
    schema=schema(
        "path",
        path=text("File to read, absolute or relative to the working directory."),
        offset=whole("First line, counted from 1."),
        limit=whole("How many lines at most."),
        column=whole("First byte within the first line, to read on in a very long line."),
    ),
    kind="read",
    repeatable=True,
)

WEB_FETCH = ToolSpec(
    name="web_fetch",
    description=(
        "Fetch a page from the public internet by GET, as Markdown (HTML) or text (also PDF). "
        "A redirect to another host is told, not followed: fetch that address then."
    ),
    schema=schema("url", url=text("http or https address.")),
    kind="fetch",
    repeatable=True,
)

WRITE = ToolSpec(
    name="write",
    description=(
        "Write a text file. It is created with its directories, or replaced as a whole; one "
        "that exists must have been read. To change a part of a file use edit."
    ),
    schema=schema(
        "path",
        "content",
        path=text("File to write, absolute or relative to the working directory."),
        content=text("The whole new content."),
    ),
    kind="edit",
)
