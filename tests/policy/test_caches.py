"""Where commands keep what they fetch, and what among it they leave alone."""

import os
from pathlib import Path

import pytest

from dragoman.policy import caches
from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.policy.profiles import OPEN, STANDARD, STRICT
from dragoman.tools.environ import environment


def told(home: Path) -> dict[str, str]:
    return caches.variables(STANDARD.forbidden, str(home))


def test_where_caches_hold_no_program_they_are_used_as_they_are(tmp_path: Path) -> None:
    (tmp_path / ".cache/pip").mkdir(parents=True)
    assert not {"XDG_CACHE_HOME", "npm_config_cache", "PRE_COMMIT_HOME"} & set(told(tmp_path))
    assert caches.programs(str(tmp_path)) == ()


def test_what_is_linked_into_projects_is_the_commands_own(tmp_path: Path) -> None:
    own = str(tmp_path / caches.OWN)
    assert all(place.startswith(f"{own}/") for place in told(tmp_path).values())
    assert f"~/{caches.OWN}" in STANDARD.writable and f"~/{caches.OWN}" in OPEN.writable
    assert not STRICT.writable


@pytest.mark.parametrize(
    "name",
    [".cache/pre-commit", ".cache/p10k-x", ".cache/black", ".cache/ksycoca6_en", ".cache/mozilla"],
)
def test_beside_a_program_or_a_secret_commands_have_their_own(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    assert told(tmp_path)["XDG_CACHE_HOME"] == str(tmp_path / caches.OWN)
    assert (str(tmp_path / name) in caches.programs(str(tmp_path))) is ("mozilla" not in name)


def test_programs_that_come_while_a_host_runs_are_sealed(tmp_path: Path) -> None:
    """A host runs for weeks; its folder stays what it was, whatever takes its place meanwhile."""
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home / ".cache", work, tmp_path / "other"):
        folder.mkdir(parents=True)
    rules = Rules(forbidden_paths=(), writable_paths=("~/.cache",))
    policy = AutonomyPolicy(rules, home=str(home))
    before = policy.boundary("supervised", str(work))
    place = home / ".cache/pre-commit"
    place.mkdir()
    work.rename(tmp_path / "moved")
    work.symlink_to(tmp_path / "other")
    after = policy.boundary("supervised", str(work))
    assert after.sealed == (str(place),) and before.sealed == ()
    assert after.cwd == before.cwd == str(work) and policy.boundary("full", "/").sealed
    place.rmdir()
    assert policy.boundary("supervised", str(work)).sealed == ()


def test_what_is_installed_is_run_from_where_it_is(tmp_path: Path) -> None:
    (tmp_path / ".cache/ms-playwright").mkdir(parents=True)
    (tmp_path / ".npm/_npx").mkdir(parents=True)
    found = told(tmp_path)
    assert found["PLAYWRIGHT_BROWSERS_PATH"] == str(tmp_path / ".cache/ms-playwright")
    assert found["npm_config_cache"] == str(tmp_path / caches.OWN / "npm")


def test_a_folder_that_cannot_be_listed_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / ".cache").write_text("no folder")
    assert caches.programs(str(tmp_path)) == ()


def test_no_command_can_put_a_link_where_a_folder_is_made_for_the_next() -> None:
    """What lies in another writable folder lies in one that is taken apart: it takes no names."""
    home = [path for path in STANDARD.writable if path.startswith("~/")]
    inside = [(a, b) for a in home for b in home if b.startswith(f"{a}/")]
    kept = (*STANDARD.sealed, *STANDARD.forbidden)
    assert all(any(os.path.dirname(one) == a for one in kept) for a, _ in inside), inside


def test_commands_are_told(tmp_path: Path) -> None:
    """None of the names looks like a secret, which would be kept from them."""
    (tmp_path / ".cache/uv").mkdir(parents=True)
    found = told(tmp_path)
    assert found.items() <= environment((), found, {"XDG_CACHE_HOME": "/the/owners"}).items()
