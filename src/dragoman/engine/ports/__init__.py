"""The small interfaces behind which everything outside the engine lives.

`store`, `agents`, `providers`, `tools` and `policy` implement these; the engine calls only these.
"""

from .agents import Agent as Agent
from .agents import AgentProfile as AgentProfile
from .agents import Agents as Agents
from .agents import Budget as Budget
from .agents import HostedPort as HostedPort
from .agents import PromptTurn as PromptTurn
from .agents import TurnPort as TurnPort
from .agents import TurnResult as TurnResult
from .models import ModelCallArgs as ModelCallArgs
from .models import ModelCallBegan as ModelCallBegan
from .models import ModelCallEnded as ModelCallEnded
from .models import ModelInfo as ModelInfo
from .models import ModelOpened as ModelOpened
from .models import ModelPart as ModelPart
from .models import ModelRequest as ModelRequest
from .models import ModelRetry as ModelRetry
from .models import Models as Models
from .models import ModelStop as ModelStop
from .models import ModelText as ModelText
from .models import ModelThought as ModelThought
from .models import ModelUsage as ModelUsage
from .models import Provider as Provider
from .models import ToolSpec as ToolSpec
from .store import AskRow as AskRow
from .store import Batch as Batch
from .store import Clock as Clock
from .store import Entry as Entry
from .store import Shelf as Shelf
from .store import Store as Store
from .store import row_of as row_of
from .tools import Answer as Answer
from .tools import Files as Files
from .tools import Judgement as Judgement
from .tools import Outcome as Outcome
from .tools import Policy as Policy
from .tools import Preview as Preview
from .tools import Previewing as Previewing
from .tools import Reach as Reach
from .tools import Terminals as Terminals
from .tools import Tool as Tool
from .tools import Toolbox as Toolbox
from .tools import ToolEnv as ToolEnv
