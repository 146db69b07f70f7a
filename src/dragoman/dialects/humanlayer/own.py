"""What this protocol keeps with a session."""

from dragoman.engine.traits import Trait


class Own(Trait, frozen=True):
    NAME = "humanlayer"

    run_id: str = ""
    permission_prompt_tool: str = ""
    draft: str = ""  # what a draft is to begin with
    editor_state: str = ""  # the desktop app's
    discarded: bool = False
    place: str = ""  # where a draft is to begin, when that is not where it was made
