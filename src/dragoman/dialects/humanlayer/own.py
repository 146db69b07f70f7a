"""What this protocol keeps with a session."""

from dragoman.engine.traits import Trait


class Own(Trait, frozen=True):
    NAME = "humanlayer"

    run_id: str = ""
    permission_prompt_tool: str = ""
