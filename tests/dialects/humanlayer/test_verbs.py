"""The table of methods, and what a first connection loads of it."""

import inspect
import subprocess
import sys

import pytest

from dragoman.dialects.humanlayer.verbs import WHERE, find


@pytest.mark.parametrize("where", WHERE)
def test_every_method_leads_to_a_function(where: str) -> None:
    assert inspect.iscoroutinefunction(find(where))


def test_a_connection_loads_no_method_before_it_is_called() -> None:
    code = (
        "import sys; from dragoman.dialects.humanlayer import hear, verbs\n"
        "names = ('launch', 'conversation', 'sessions', 'approvals', 'speak', 'subscription')\n"
        "here = lambda: [n for n in names if f'dragoman.dialects.humanlayer.{n}' in sys.modules]\n"
        "print(here()); verbs.find('approvals.fetch'); print('approvals' in here())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n") == ["[]", "True", ""], done.stderr
