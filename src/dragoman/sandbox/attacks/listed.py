"""The whole list."""

from .files import FILES
from .kernel import KERNEL
from .processes import PROCESSES

ATTACKS = (*FILES, *PROCESSES, *KERNEL)
