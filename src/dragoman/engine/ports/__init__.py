"""The small interfaces behind which everything outside the engine lives.

`store`, `agents`, `providers`, `tools` and `policy` implement these; the engine calls only these.
"""

from .agents import (
    Agent,
    AgentProfile,
    Agents,
    TurnPort,
    TurnResult,
)
from .models import (
    ModelCallArgs,
    ModelCallBegan,
    ModelCallEnded,
    ModelInfo,
    ModelOpened,
    ModelPart,
    ModelRequest,
    ModelRetry,
    Models,
    ModelStop,
    ModelText,
    ModelThought,
    ModelUsage,
    Provider,
    ToolSpec,
)
from .store import (
    AskRow,
    Batch,
    Clock,
    Entry,
    Store,
)
from .tools import (
    Answer,
    Files,
    Judgement,
    Outcome,
    Policy,
    Terminals,
    Tool,
    Toolbox,
    ToolEnv,
)

__all__ = [
    "Agent",
    "AgentProfile",
    "Agents",
    "Answer",
    "AskRow",
    "Batch",
    "Clock",
    "Entry",
    "Files",
    "Judgement",
    "ModelCallArgs",
    "ModelCallBegan",
    "ModelCallEnded",
    "ModelInfo",
    "ModelOpened",
    "ModelPart",
    "ModelRequest",
    "ModelRetry",
    "ModelStop",
    "ModelText",
    "ModelThought",
    "ModelUsage",
    "Models",
    "Outcome",
    "Policy",
    "Provider",
    "Store",
    "Terminals",
    "Tool",
    "ToolEnv",
    "ToolSpec",
    "Toolbox",
    "TurnPort",
    "TurnResult",
]
