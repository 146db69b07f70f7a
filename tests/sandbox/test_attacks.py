"""Every attack of the list, for real: none leads out, and those that can show it are no duds.

`test_another_user` runs this file again as an ordinary user.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.test_escapes import needs_landlock

from dragoman.policy.paths import Boundary
from dragoman.sandbox.attacks import ATTACKS
from dragoman.sandbox.attacks.world import World
from dragoman.sandbox.choose import choose

BACKENDS = [pytest.param("landlock", marks=needs_landlock), "bubblewrap"]
ROOT = os.geteuid() == 0


def walls(world: World, **given: Any) -> Boundary:
    top = world.top
    return Boundary(
        str(world.work),
        forbidden=("/etc", str(top / "outside"), str(top / "home")),
        protected=(str(top / "config"), str(top / "data")),
        home=str(top / "home"),
        **given,
    )


def test_there_are_many_and_each_has_its_name() -> None:
    assert len(ATTACKS) >= 250 and len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    assert all(bool(attack.shell) != bool(attack.python) for attack in ATTACKS)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("backend", BACKENDS)
def test_no_attack_leads_out(tmp_path: Path, backend: str) -> None:
    with World(tmp_path / "world") as world:
        found = list(world.run(ATTACKS, choose(backend), walls(world)))
    assert len(found) == len(ATTACKS)
    may = not ROOT and backend == "landlock"
    worked = [one for one in found if one.got and not (may and one.attack.gap)]
    assert not worked, [(one.attack.name, one.got, one.said[:300]) for one in worked]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("backend", BACKENDS)
def test_nor_where_the_whole_disk_is_the_workspace(tmp_path: Path, backend: str) -> None:
    """As in the mode `full`: what is forbidden, other processes and terminals stay so."""
    some = [one for one in ATTACKS if one.python and not one.gap or "data" in one.shell]
    with World(tmp_path / "world") as world:
        found = list(world.run(some, choose(backend), walls(world, workspace_only=False)))
    worked = [one for one in found if one.got]
    assert not worked, [(one.attack.name, one.got, one.said[:300]) for one in worked]


@pytest.mark.timeout(60)
def test_the_attacks_are_no_duds(tmp_path: Path) -> None:
    some = [one for one in ATTACKS if one.real and (ROOT or not one.root)]
    assert len(some) >= 100
    with World(tmp_path / "world") as world:
        found = list(world.run(some, choose("none"), walls(world)))
    duds = [(one.attack.name, one.said[:300]) for one in found if not one.got]
    assert not duds and len(found) == len(some), duds
