"""`dragoman doctor --attack`: the list of ways out, tried here with this configuration."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dragoman.engine.ports.rows import DoctorRow as Row
from dragoman.sandbox.attacks import ATTACKS
from dragoman.sandbox.attacks.world import World
from dragoman.sandbox.choose import choose, describe
from dragoman.settings.model import Settings


def attack(settings: Settings) -> Iterator[Row]:
    """One row per attack, the harmless way: in a folder made for it. Raises BadInput."""
    from dragoman.policy.paths import Boundary

    wanted = settings.sandbox
    confine = choose(wanted.backend, network=wanted.network, unix=wanted.trust_unix_sockets)
    if confine.name == "none":
        yield Row(
            "error", "attack", "there is no sandbox: every attack would work",
            "A Linux kernel with Landlock, or bubblewrap, would confine commands.",
        )  # fmt: skip
        return
    yield Row("ok", "sandbox", describe(confine))
    top = Path(tempfile.mkdtemp(prefix="dragoman-attack-"))
    try:
        with World(top / "world") as world:
            walls = Boundary(
                str(world.work),
                forbidden=("/etc", str(world.top / "outside"), str(world.top / "home")),
                protected=(str(world.top / "config"), str(world.top / "data")),
                home=str(world.top / "home"),
            )
            for found in world.run(ATTACKS, confine, walls):
                name = f"{found.attack.name}: {found.attack.what}"
                if not found.got:
                    yield Row("ok", "attack", f"stopped: {name}")
                elif found.attack.gap:
                    yield Row("warn", "attack", f"NOT stopped: {name}", found.attack.gap)
                else:
                    fix = "Use a newer kernel, or bubblewrap; see docs/guides/sandbox.md."
                    yield Row("error", "attack", f"NOT stopped ({found.got}): {name}", fix)
    finally:
        shutil.rmtree(top, ignore_errors=True)
