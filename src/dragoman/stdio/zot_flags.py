"""The command line of `dragoman rpc`, as the zot document and the programs around it use it.

Read here and not by the table of the other commands: its errors have their own words, and words
that are no flags are ignored.
"""

_VALUED = {
    "--provider": "provider",
    "--model": "model",
    "--api-key": "api_key",
    "--base-url": "base_url",
    "--system-prompt": "system_prompt",
    "--append-system-prompt": "append_system_prompt",
    "--reasoning": "reasoning",
    "--max-steps": "max_steps",
    "--temperature": "temperature",
    "--tools": "tools",
    "--cwd": "cwd",
    "--session": "session",
    "--agent": "agent",
    "--mode": "mode",
    "--config-dir": "config_dir",
    "--ext": "",
    "-e": "",
}
_SWITCHES = {
    "--no-tools": "no_tools",
    "--supervised": "supervised",
    "--no-context-files": "no_context_files",
    "-nc": "no_context_files",
    "--list-models": "list_models",
    "--version": "version",
    "-v": "version",
    "--no-yolo": "no_yolo",
}
# Taken and without effect here: of the terminal mode, of extensions, or what is so anyway.
_IGNORED = frozenset({
    "--rpc", "--no-ext", "--no-extensions", "--no-skill", "--no-skills", "--with-skill",
    "--with-skills", "--continue", "-c", "--resume", "-r", "--no-session", "--experimental-oauth",
    "--insecure", "--stats", "--stream", "--yes", "-y", "--help", "-h",
})  # fmt: skip
_PRINT = frozenset({"-p", "--print", "--json"})
_MODES = ("readonly", "plan", "supervised", "full")
_EFFORTS = {
    "off": "off", "minimum": "minimum", "minimal": "minimum", "low": "low", "medium": "medium",
    "high": "high", "xhigh": "xhigh", "max": "max", "maximum": "max",
}  # fmt: skip


class WrongFlag(Exception):
    """The command line cannot be understood; the text is the reason."""


class Flags:
    """What the command line says; empty where it says nothing."""

    def __init__(self) -> None:
        self.provider = ""
        self.model = ""
        self.api_key = ""
        self.base_url = ""
        self.system_prompt: str | None = None
        self.append_system_prompt: list[str] = []
        self.reasoning = ""
        self.max_steps = 0
        self.temperature: float | None = None
        self.tools: list[str] | None = None
        self.no_tools = False
        self.cwd = ""
        self.session = ""
        self.agent = ""
        self.config_dir = ""
        self.supervised = False
        self.mode = ""
        self.no_context_files = False
        self.list_models = False
        self.version = False
        self.no_yolo = False
        self.prints = ""  # the flag that asks for print mode instead
        self.words: list[str] = []  # its prompt

    def chooses(self) -> bool:
        """Whether it names something that has to exist before we answer anything."""
        provider = self.provider if self.provider != "demo" else ""  # which is always there
        named = (provider, self.model, self.api_key, self.base_url, self.session, self.agent)
        return any(named)

    def without_effect_in_print(self) -> list[str]:
        """What was given that only the protocol's own sessions know, as it is spelled."""
        given = {
            "--system-prompt": self.system_prompt, "--append-system-prompt":
            self.append_system_prompt, "--reasoning": self.reasoning,
            "--max-steps": self.max_steps,
            "--temperature": self.temperature, "--tools": self.tools, "--no-tools": self.no_tools,
            "--no-context-files": self.no_context_files,
        }  # fmt: skip
        return [name for name, value in given.items() if value or type(value) is float]


def parse(words: list[str]) -> Flags:
    """Read the words after `rpc`. Raises WrongFlag."""
    flags = Flags()
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            flags.words.append(word)
            continue
        name, equals, value = word.partition("=")
        if name in _VALUED:
            if not equals:
                given = next(rest, None)
                if given is None:
                    raise WrongFlag(f"{name} requires a value")
                value = given
            if _VALUED[name]:
                _put(flags, name, _VALUED[name], value)
        elif equals:
            raise WrongFlag(f'unknown flag "{word}"')
        elif name in _SWITCHES:
            setattr(flags, _SWITCHES[name], True)
        elif name in _PRINT:
            flags.prints = name
        elif name not in _IGNORED:
            raise WrongFlag(f'unknown flag "{name}"')
    return flags


def _put(flags: Flags, name: str, key: str, value: str) -> None:
    if key == "append_system_prompt":
        flags.append_system_prompt.append(value)
    elif key == "tools":
        flags.tools = [tool.strip() for tool in value.split(",") if tool.strip()]
    elif key == "max_steps":
        if not value.isascii() or not value.isdigit() or int(value) < 1:
            raise WrongFlag("--max-steps must be a positive integer")
        flags.max_steps = int(value)
    elif key == "temperature":
        try:
            flags.temperature = float(value)
        except ValueError:
            flags.temperature = -1.0
        if not 0 <= flags.temperature <= 2:
            raise WrongFlag("--temperature must be a number from 0 to 2")
    elif key == "mode":
        if value not in _MODES:
            raise WrongFlag(f"--mode must be {'|'.join(_MODES)}")
        flags.mode = value
    elif key == "reasoning":
        if value not in _EFFORTS:
            raise WrongFlag("--reasoning must be off|minimum|low|medium|high|xhigh|max")
        flags.reasoning = _EFFORTS[value]
    else:
        setattr(flags, key, value)
