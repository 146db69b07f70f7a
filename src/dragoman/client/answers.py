"""What the host answers, as types: the shapes of our own protocol."""

import msgspec

from dragoman.dialects.dragoman.answers import AgentRow as AgentRow
from dragoman.dialects.dragoman.answers import Agents as Agents
from dragoman.dialects.dragoman.answers import Answered as Answered
from dragoman.dialects.dragoman.answers import Approval as Approval
from dragoman.dialects.dragoman.answers import Approvals as Approvals
from dragoman.dialects.dragoman.answers import Board as Board
from dragoman.dialects.dragoman.answers import BoardRow as BoardRow
from dragoman.dialects.dragoman.answers import Checkpoint as Checkpoint
from dragoman.dialects.dragoman.answers import Checkpoints as Checkpoints
from dragoman.dialects.dragoman.answers import ClientRow as ClientRow
from dragoman.dialects.dragoman.answers import Clients as Clients
from dragoman.dialects.dragoman.answers import CommandRow as CommandRow
from dragoman.dialects.dragoman.answers import Commands as Commands
from dragoman.dialects.dragoman.answers import Facts as Facts
from dragoman.dialects.dragoman.answers import History as History
from dragoman.dialects.dragoman.answers import ModelRow as ModelRow
from dragoman.dialects.dragoman.answers import Models as Models
from dragoman.dialects.dragoman.answers import OneRule as OneRule
from dragoman.dialects.dragoman.answers import Part as Part
from dragoman.dialects.dragoman.answers import Question as Question
from dragoman.dialects.dragoman.answers import Restored as Restored
from dragoman.dialects.dragoman.answers import Rules as Rules
from dragoman.dialects.dragoman.answers import Session as Session
from dragoman.dialects.dragoman.answers import Sessions as Sessions
from dragoman.dialects.dragoman.answers import Told as Told
from dragoman.dialects.dragoman.answers import TouchedFile as TouchedFile
from dragoman.dialects.dragoman.answers import Turn as Turn
from dragoman.dialects.dragoman.answers import Watching as Watching


class Finished(msgspec.Struct, frozen=True):
    """How a turn ended."""

    turn: str
    outcome: str
    stop: str
    text: str = ""
    error: str = ""
    cause: str = ""


class Deletion(msgspec.Struct, frozen=True):
    deleted: bool
