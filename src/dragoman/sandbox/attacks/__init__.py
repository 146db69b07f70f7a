"""Ways out of the sandbox, tried for real and harmlessly: `dragoman doctor --attack`."""

from .files import FILES
from .kernel import KERNEL
from .processes import PROCESSES

ATTACKS = (*FILES, *PROCESSES, *KERNEL)
