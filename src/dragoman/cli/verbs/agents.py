"""`dragoman agents`: the agents of the configuration, and what their models are told."""

from .. import reach, say
from ..parse import Args


def run(args: Args) -> int:
    """Run one sub-command."""
    return _show(args) if args.sub == "show" else _list(args)


def _list(args: Args) -> int:
    """Print one row per agent."""
    found = reach.call(args, "agents")
    if say.as_json(args, found):
        return 0
    rows = [
        (
            f"{row['alias']} *" if row["alias"] == found["default"] else row["alias"],
            row["model"] or row["problem"],
            row["mode"],
            row["reasoning"],
            row["backend"],
        )
        for row in found["agents"]
    ]
    headers = ("agent", "model", "mode", "reasoning", "backend")
    say.table(headers, rows, spare=("reasoning", "backend", "mode"), empty="no agents")
    return 0


def _show(args: Args) -> int:
    """Print one agent, or with --prompt what its model gets in this folder."""
    from ..local.prompts import given

    found = given(args.config_dir, args.agent)
    if say.as_json(args, found):
        return 0
    if args.prompt:
        say.out(found["prompt"].rstrip())
    else:
        agent = found["agent"]
        for name in ("alias", "model", "mode", "reasoning", "backend", "max_steps"):
            say.out(f"{name:10} {agent[name]}")
        say.out(f"{'tools':10} {', '.join(tool['name'] for tool in found['tools'])}")
    size = f"prompt: {say.many(found['prompt_tokens'], 'token')}, "
    size += f"{say.many(len(found['tools']), 'tool')}: {say.many(found['tool_tokens'], 'token')}"
    say.err(f"{size} (roughly)")
    for note in found["notes"]:
        say.warn(note)
    return 0
