"""Ordinary work again as an ordinary user: root may do things that others may not."""

import pytest
from tests.sandbox.test_another_user import Nobody, nobody  # noqa: F401
from tests.sandbox.test_escapes import needs_landlock

HERE = "tests/policy"
WORK = (
    "test_the_python_of_the_project", "test_an_environment_whose_interpreter_is_pyenvs",
    "test_the_shims_of_pyenv", "test_an_environment_outside_of_the_project", "test_git_commits",
    "test_a_server_in_the_background", "test_the_temporary_folder",
    "test_what_every_program_may_see", "test_a_sibling_checkout_after_one_question",
    "test_full_reaches_outside", "test_secrets_are_kept_in_every_mode",
    "test_caches_are_written_and_programs_beside_them_are_not",
    "test_where_caches_hold_programs_commands_have_their_own",
    "test_what_the_owner_runs_later_is_not_written",
    "test_pip_installs_into_the_project",
)  # fmt: skip

pytestmark = [
    needs_landlock,
    pytest.mark.root,  # others run the whole suite as an ordinary user anyway
    pytest.mark.timeout(1200),
]


def test_ordinary_work_works_for_an_ordinary_user(nobody: Nobody) -> None:  # noqa: F811
    said = nobody.run(*(f"{HERE}/test_ordinary_work.py::{name}" for name in WORK))
    assert " passed" in said and "failed" not in said and "skipped" not in said, said


def test_domains_hold_for_an_ordinary_user(nobody: Nobody) -> None:  # noqa: F811
    said = nobody.run(f"{HERE}/test_domains.py")
    assert " passed" in said and "failed" not in said and "skipped" not in said, said
