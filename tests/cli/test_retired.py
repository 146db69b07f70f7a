"""Command lines of earlier versions are understood until a date, and told of it."""

from datetime import date

import pytest

from dragoman.cli import main, retired, table
from dragoman.cli.parse import Usage
from dragoman.cli.retired import Retired, renew

FAR, PAST = date(2999, 1, 1), date(2026, 1, 1)
TABLE = (
    Retired(("list",), FAR, ("sessions",)),
    Retired(("sessions", "dump"), FAR, ("sessions", "show")),
    Retired(("sessions", "show", "--as-json"), FAR, ("sessions", "show", "--json")),
    Retired(("halt",), PAST, ("stop",)),
)


@pytest.mark.parametrize(
    ("words", "now"),
    [
        (["list", "--json"], ["sessions", "--json"]),
        (["sessions", "dump", "s1"], ["sessions", "show", "s1"]),
        (["sessions", "--config-dir", "dump", "dump"], "sessions show --config-dir dump".split()),
        (["sessions", "show", "s1", "--as-json"], ["sessions", "show", "s1", "--json"]),
        (["sessions", "show", "--as-json=true"], ["sessions", "show", "--json=true"]),
        (["sessions", "show", "--", "--as-json"], None),
        (["run", "--as-json"], None),
        (["run", "dump"], None),
        ([], None),
    ],
)
def test_an_older_line_is_said_in_new_words(
    words: list[str], now: list[str] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert renew(words, table=TABLE) == now
    assert ("2999-01-01" in capsys.readouterr().err) is (now is not None)


def test_after_its_date_it_is_told_what_it_is_now() -> None:
    with pytest.raises(Usage, match="`halt` was understood until 2026-01-01; it is `stop` now"):
        renew(["halt"], table=TABLE)


def test_it_runs_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = (
        Retired(("shells",), FAR, ("completion",)),
        Retired(("completion", "--x"), FAR, ("completion", "--help")),
    )
    monkeypatch.setattr(retired, "RETIRED", rows)
    assert main.main(["shells", "bash"]) == 0
    shown = capsys.readouterr()
    assert "complete" in shown.out
    assert shown.err == (
        "dragoman: `shells` is `completion` now; the old name works until 2999-01-01.\n"
    )
    assert main.main(["completion", "--x"]) == 0
    assert main.main(["nothing-of-ours"]) == 2


def test_no_row_names_what_is_there_or_leads_nowhere() -> None:
    from dragoman.cli.parse import parse

    for one in retired.RETIRED:
        top = table.find(one.instead[0])
        assert top is not None, one
        old = table.find(one.words[0])
        if old is not None:
            with pytest.raises(Usage):
                parse(old, list(one.words[1:]))
