"""The bounds of the whole host: taken from the configuration, and changed with it."""

from pathlib import Path

from dragoman.host.compose import compose


async def test_bounds_are_taken_over_and_follow_a_change(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[limits]\nmax_sessions = 7\nmax_approvals = 8\nmax_inbox = 9\n")
    file.chmod(0o600)
    composed = await compose(config_dir=str(tmp_path), store="memory")
    try:
        host = composed.host
        assert (host.max_sessions, host.max_asks, host.max_inbox) == (7, 8, 9)
        file.write_text("[limits]\nmax_sessions = 17\nmax_approvals = 18\nmax_inbox = 19\n")
        composed.config.reload()
        assert (host.max_sessions, host.max_asks, host.max_inbox) == (17, 18, 19)
    finally:
        await composed.close()
