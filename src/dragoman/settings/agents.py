"""`[agents.<alias>]` and the profiles and defaults that agents take their values from."""

from __future__ import annotations  # read when a section is: most are never

from typing import Annotated, Literal

from . import kinds
from .kinds import (
    MODES,
    Effort,
    Mode,
    Money,
    Positive,
    Profile,
    Seconds,
    Section,
    Share,
    Temperature,
    Whole,
    Words,
    says,
)


class AgentMemory(Section, frozen=True):
    """`[agents.<alias>.memory]`"""

    tools: Annotated[bool, says("Offer the memory tools to the model.")] = False
    auto_recall: Annotated[
        bool, says("Put what is remembered about the prompt before it, by itself.")
    ] = False
    auto_save: Annotated[bool, says("Remember every finished turn, by itself.")] = False


class Budgets(Section, frozen=True):
    """What an agent may spend and do. Not set, or 0: no limit."""

    max_cost_per_hour_usd: Annotated[
        Money | None, says("USD that model calls may cost in any hour; 0: no limit.")
    ] = None
    max_cost_per_day_usd: Annotated[
        Money | None, says("USD that model calls may cost in any 24 hours; 0: no limit.")
    ] = None
    max_actions_per_hour: Annotated[
        Whole | None, says("Tool calls that act (not those that look) in any hour; 0: no limit.")
    ] = None
    max_actions_per_day: Annotated[
        Whole | None, says("Tool calls that act in any 24 hours; 0: no limit.")
    ] = None


# What the rules of an agent say, in a set of its own and in the general one.
_PROFILES = says(
    "strict: only the workspace; standard: ordinary work; open: reads everything else."
)
_NETWORK = says("Commands may use the network; not set: as [sandbox] says.")
_DOMAINS = says("Commands reach these hosts only, by our proxy: name, *.name, name:port.")
_ROOTS = says("Further directories inside the boundary.")
_PATHS = says("Paths that no tool may touch, with the built-in ones.")
_APPROVED = says("Tools that run without asking.")
_ASKED = says("Tools that are asked about every time.")
_ALLOWED = says("Shell commands that run without asking, by their first words.")
_FORBIDDEN = says("Shell commands that are always refused, by their first words.")
_HIGH_RISK = says("Refuse high-risk shell commands instead of asking about them.")
_UNANSWERED = says("Seconds after which an unanswered approval is denied; 0: never.")


class Risk(Budgets, frozen=True):
    """What an agent may do. A key that is not set is taken from the next place in line."""

    mode: Annotated[Mode | None, says(MODES)] = None
    profile: Annotated[Profile | None, _PROFILES] = None
    workspace_only: Annotated[
        bool | None, says("Ask about paths outside of the session's directory. Not in mode full.")
    ] = None
    network: Annotated[bool | None, _NETWORK] = None
    domains: Annotated[Words | None, _DOMAINS] = None
    allowed_roots: Annotated[Words | None, _ROOTS] = None
    forbidden_paths: Annotated[Words | None, _PATHS] = None
    auto_approve: Annotated[Words | None, _APPROVED] = None
    always_ask: Annotated[Words | None, _ASKED] = None
    allowed_commands: Annotated[Words | None, _ALLOWED] = None
    forbidden_commands: Annotated[Words | None, _FORBIDDEN] = None
    block_high_risk: Annotated[bool | None, _HIGH_RISK] = None
    approval_timeout_secs: Annotated[Seconds | None, _UNANSWERED] = None


_Reasoning = Annotated[Effort | None, says("How hard the model is to think.")]
_Temperature = Annotated[Temperature | None, says("The model's temperature, 0 to 2.")]
_MaxSteps = Annotated[Whole | None, says("Model calls in one turn; 0: no limit.")]
_AutoCompact = Annotated[
    Share | None, says("Share of the context window at which history is compacted; 0: never.")
]
_ContextFiles = Annotated[bool | None, says("Read AGENTS.md from the working directory upward.")]
_Tools = Annotated[Words | None, says("Only these tools; when not set, all.")]
_ShellTimeout = Annotated[
    Seconds | None, says("Seconds after which a command is ended when it sets no time; 0: never.")
]
_AllowEnv = Annotated[
    Words | None, says("Variables that commands see beside the usual ones; globs, never secrets.")
]
_MaxProcesses = Annotated[Positive | None, says("Processes that one command may have.")]
_MaxOutput = Annotated[
    Positive | None, says("Bytes of a command's output that the model is shown.")
]
_Mcp = Annotated[Words | None, says("Only these servers of [mcp]; when not set, all.")]


class RuntimeProfile(Section, frozen=True):
    """`[runtime_profiles.<name>]`: a named way of working that agents can share."""

    reasoning: _Reasoning = None
    temperature: _Temperature = None
    max_steps: _MaxSteps = None
    auto_compact: _AutoCompact = None
    context_files: _ContextFiles = None
    tools: _Tools = None
    shell_timeout_secs: _ShellTimeout = None
    allow_env: _AllowEnv = None
    max_processes: _MaxProcesses = None
    max_output_bytes: _MaxOutput = None
    mcp: _Mcp = None


class Autonomy(Budgets, frozen=True):
    """`[autonomy]`: the rules of every agent that does not say otherwise."""

    level: Annotated[Mode, says(MODES)] = "supervised"
    profile: Annotated[Profile, _PROFILES] = "standard"
    workspace_only: Annotated[bool, says("Ask about paths outside of the session's directory.")] = (
        True
    )
    network: Annotated[bool | None, _NETWORK] = None
    domains: Annotated[Words, _DOMAINS] = ()
    allowed_roots: Annotated[Words, _ROOTS] = ()
    forbidden_paths: Annotated[Words, _PATHS] = ()
    auto_approve: Annotated[Words, _APPROVED] = ()
    always_ask: Annotated[Words, _ASKED] = ()
    allowed_commands: Annotated[Words, _ALLOWED] = ()
    forbidden_commands: Annotated[Words, _FORBIDDEN] = ()
    block_high_risk: Annotated[bool, _HIGH_RISK] = False
    approval_timeout_secs: Annotated[Seconds, _UNANSWERED] = 0


class Agent(Risk, frozen=True):
    """`[agents.<alias>]`: one agent."""

    backend: Annotated[
        Literal["builtin", "acp"],
        says("builtin: our own loop; acp: another ACP agent, started as a process."),
    ] = "builtin"
    command: Annotated[str, says("The program of an ACP backend.")] = ""
    args: Annotated[Words, says("Its arguments.")] = ()
    env: kinds.Environment = {}
    pass_env: kinds.PassEnv = ()
    trust_with_daemon: kinds.WithDaemon = False
    trust_outside_sandbox: kinds.OutsideSandbox = False
    sandbox_network: Annotated[bool, says("It may use the network.")] = True
    sandbox_writable: Annotated[
        Words, says("Files and folders that it may read and write beside the workspace.")
    ] = ()
    provider: Annotated[str, says("The provider, when `model` does not begin with it.")] = ""
    model: Annotated[
        str, says("provider/model, or the model alone when `provider` is set; empty: chosen.")
    ] = ""
    api_key: Annotated[str, says("The provider's key, for this agent alone.")] = ""
    base_url: Annotated[str, says("The provider's address, for this agent alone.")] = ""
    system_prompt: Annotated[str | None, says("Replaces the built-in system prompt.")] = None
    append_system_prompt: Annotated[
        str | Words, says("Added to the system prompt; a text or a list of them.")
    ] = ()
    risk_profile: Annotated[str, says("Name of a [risk_profiles.<name>].")] = ""
    runtime_profile: Annotated[str, says("Name of a [runtime_profiles.<name>].")] = ""
    autonomy: Annotated[Mode | None, says("The same as `mode`, which wins.")] = None
    memory: Annotated[AgentMemory, says("What is remembered across sessions.")] = AgentMemory()
    # The way of working, for this agent alone; the rules come with `Risk`.
    reasoning: _Reasoning = None
    temperature: _Temperature = None
    max_steps: _MaxSteps = None
    auto_compact: _AutoCompact = None
    context_files: _ContextFiles = None
    tools: _Tools = None
    shell_timeout_secs: _ShellTimeout = None
    allow_env: _AllowEnv = None
    max_processes: _MaxProcesses = None
    max_output_bytes: _MaxOutput = None
    mcp: _Mcp = None


class Memory(Section, frozen=True):
    """`[memory]`: what agents remember across sessions."""

    enabled: Annotated[bool, says("Keep memories at all.")] = True
    max_entries: Annotated[Positive, says("How many entries one agent keeps.")] = 100_000
    max_entry_bytes: Annotated[Positive, says("The longest entry, in bytes.")] = 8192
    recall_entries: Annotated[Positive, says("How many entries a prompt gets.")] = 5
