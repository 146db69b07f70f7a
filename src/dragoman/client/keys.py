"""Keys that whoever asks has in the environment, and the daemon has not."""

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def only_here(
    variables: "Mapping[str, Sequence[str]]",
    env: "Mapping[str, str]",
    config_dir: str | None = None,
) -> str:
    """What to say of them and do about it; empty when there are none.

    `variables` is `key_variables` of the host's models. A daemon has the environment that it was
    started with: who sets a key and opens the terminal again has not brought it there.
    """
    here = [name for name, keys in variables.items() if any(env.get(key) for key in keys)]
    if not here:
        return ""
    from shlex import quote

    where = f" --config-dir {quote(config_dir)}" if config_dir else ""
    return (
        f"only this shell has a key for {', '.join(here)}, not the daemon, which was started "
        f"without. Keep it for both: dragoman login {here[0]}{where}. Or start the daemon again "
        f"from here: dragoman stop{where} && dragoman daemon --background{where}"
    )
