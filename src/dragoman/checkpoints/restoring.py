"""Puts files back: all are looked at before the first is touched, and nobody's work is lost."""

import contextlib
import difflib
import os
import stat
from collections.abc import Sequence

from dragoman.engine.faults import BadInput, Changed, Refused
from dragoman.engine.ports.checkpoints import Fate
from dragoman.engine.visible import many
from dragoman.policy.opening import walk_directory
from dragoman.tools.overwrite import hinders, overwrite, replaceable, take_after

from .comparing import fate_of
from .database import NOTHING, UNKNOWN, Database, FileChange, State, hash_of, short
from .looking import state_of

_SHOWN = 12_000  # characters of a diff that are shown
_LINES = 4_000  # lines of a text that are compared


def between(steps: Sequence[Sequence[FileChange]], *, back: bool) -> list[FileChange]:
    """What others did to files between turns that are taken back at once (or done again)."""
    reached: dict[str, State] = {}
    found: list[FileChange] = []
    for changes in steps:
        for one in changes:
            old, new = (one.after, one.before) if back else (one.before, one.after)
            met = reached.get(one.path, old)
            if met != old:
                found.append(
                    FileChange(one.path, old, met) if back else FileChange(one.path, met, old)
                )
            reached[one.path] = new
    return found


def plan(steps: Sequence[Sequence[FileChange]], *, back: bool) -> list[FileChange]:
    """Several turns, in the order in which they are taken back or done again, as one change."""
    made: dict[str, FileChange] = {}
    for changes in steps:
        for one in changes:
            old, new = (one.after, one.before) if back else (one.before, one.after)
            known = made.get(one.path)
            made[one.path] = FileChange(one.path, known.before if known else old, new)
    return [made[path] for path in sorted(made)]


def restore(
    db: Database, changes: Sequence[FileChange], limit: int, space: str
) -> tuple[list[tuple[str, Fate]], list[str]]:
    """Make every file what its change says; returns those, and the ones whose content is lost.

    Raises Changed, and changes nothing, when a file is not what the turn left.
    """
    wanted: list[FileChange] = []
    lost: list[str] = []
    trouble: list[tuple[str, str]] = []
    for change in changes:
        try:
            now, data = state_of(change.path, limit)
        except OSError as error:
            raise Refused(
                f"{change.path} cannot be reached: {error.strerror}.",
                "A folder on its way was replaced by a link, or may not be entered.",
            ) from error
        if data is not None:
            now = State(now.mode, hash_of(data))
        if now == change.after and (now.hash is not None or not now.mode):
            continue
        if change.before.mode and change.before.hash is None or _lacks(db, change.after):
            lost.append(change.path)
        elif now != change.before:
            trouble.append((change.path, _difference(db, change, now, data, space)))
        else:
            wanted.append(change)
    if trouble:
        hint = "Put those changes away first, then try again."
        raise _by_others(trouble, space, "since that turn", hint)
    done: list[tuple[str, Fate]] = []
    for change in wanted:
        try:
            _put(db, change, space)
        except OSError as error:
            raise BadInput(
                f"{change.path} could not be put back: {error.strerror}.",
                f"{len(done)} of {len(wanted)} files were. Mend it and try again: what is back "
                "already is left as it is.",
            ) from error
        done.append((change.path, fate_of(change)))
    return done, lost


def refuse(db: Database, others: Sequence[FileChange], space: str) -> None:
    """Raise Changed when others worked between the turns: their work would be lost."""
    if others:
        hint = "Undo turn by turn, down to the one before which they did."
        raise _by_others(_told(db, others, space), space, "between those turns", hint)


def keep_theirs(
    db: Database, wanted: Sequence[FileChange], others: Sequence[FileChange], limit: int, space: str
) -> None:
    """Raise Changed when others worked on a file between two changes of one turn.

    What became of their work is in the file with the turn's own: nobody can tell them apart. A
    file that was made what the undo would make of it is no trouble.
    """
    target = {one.path: one.after for one in wanted}
    lost = [one for one in others if one.path in target and one.after != target[one.path]]
    still = {path for path in {one.path for one in lost} if _now(path, limit) != target[path]}
    if any(one.path in still for one in lost):
        trouble = _told(db, [one for one in lost if one.path in still], space)
        hint = "Make these files by hand what they were before that turn, then try again."
        raise _by_others(
            trouble, space, "while that turn worked on it", hint, "changed, or may have "
        )


def _now(path: str, limit: int) -> State:
    try:
        now, data = state_of(path, limit)
    except OSError:
        return State(UNKNOWN)
    return now if data is None else State(now.mode, hash_of(data))


def _told(db: Database, others: Sequence[FileChange], space: str) -> list[tuple[str, str]]:
    trouble = []
    for one in others:
        data = db.get(one.after.hash) if one.after.hash is not None else None
        theirs = _difference(db, one, one.after, data, space, "as they left it")
        trouble.append((one.path, theirs))
    return trouble


def _by_others(
    trouble: Sequence[tuple[str, str]], space: str, when: str, hint: str, perhaps: str = ""
) -> Changed:
    names = ", ".join(dict.fromkeys(short(path, space) for path, _ in trouble[:10]))
    text = "\n".join(diff for _, diff in trouble)
    if len(text) > _SHOWN:
        text = text[:_SHOWN] + "\n… [more is not shown]"
    return Changed(
        f"Somebody else {perhaps}changed {names} {when}; nothing was put back.\n{text}\n",
        hint,
        files=list(dict.fromkeys(short(path, space) for path, _ in trouble)),
        diff=text,
    )


def _lacks(db: Database, state: State) -> bool:
    return state.mode != 0 and (state.hash is None or db.get(state.hash) is None)


def _put(db: Database, change: FileChange, space: str) -> None:
    target = change.after
    directory, name = os.path.split(change.path)
    if target == NOTHING:
        parent = walk_directory(directory)
        try:
            os.unlink(name, dir_fd=parent)
        finally:
            os.close(parent)
        _prune(directory, space)
        return
    data = db.get(target.hash) if target.hash is not None else None
    if data is None:
        raise BadInput(f"The content of {change.path} is not kept any more.")
    parent = walk_directory(directory, 0o755)
    try:
        before = _there(parent, name)
        if before is None or stat.S_ISLNK(target.mode) or not stat.S_ISREG(before.st_mode):
            before = None  # nothing of it is kept
        if before is None or replaceable(before, [space]):
            try:
                return _swap(parent, name, data, target.mode, before)
            except OSError as error:
                if before is None or not hinders(error):
                    raise
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(name, flags, dir_fd=parent)
        try:
            overwrite(fd, data)
            if stat.S_IMODE(before.st_mode) != stat.S_IMODE(target.mode):
                os.fchmod(fd, stat.S_IMODE(target.mode))
        finally:
            os.close(fd)
    finally:
        os.close(parent)


def _there(parent: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _swap(parent: int, name: str, data: bytes, mode: int, before: os.stat_result | None) -> None:
    """Put a new file or link in the place of what is there."""
    temporary = f".{name[:200]}.{os.urandom(6).hex()}.tmp"
    try:
        if stat.S_ISLNK(mode):
            os.symlink(os.fsdecode(data), temporary, dir_fd=parent)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(temporary, flags, 0o600, dir_fd=parent), "wb") as file:
                file.write(data)
                if before is not None:
                    take_after(file.fileno(), before, parent, name)
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
        raise


def _prune(directory: str, space: str) -> None:
    """Remove folders that are empty now, inside of the workspace."""
    while directory.startswith(space + "/"):
        try:
            os.rmdir(directory)
        except OSError:
            return  # not empty, or not ours to remove
        directory = os.path.dirname(directory)


def _difference(
    db: Database,
    change: FileChange,
    now: State,
    data: bytes | None,
    space: str,
    when: str = "now",
) -> str:
    """What somebody made of a file, as a diff against what the turn left."""
    name = short(change.path, space)
    if now == NOTHING:
        return f"{name}: it was removed."
    if change.before == NOTHING:
        return f"{name}: it was made, with {many(len(data or b''), 'byte')}."
    left = db.get(change.before.hash) if change.before.hash is not None else None
    if left == data:
        return f"{name}: its permissions or its type changed."
    if left is None or data is None or b"\0" in left or b"\0" in data:
        return f"{name}: its content changed."
    old, new = (_lines(one) for one in (left, data))
    return "\n".join(
        difflib.unified_diff(
            old, new, f"{name} (as the turn left it)", f"{name} ({when})", "", "", 2, ""
        )
    )


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines()[:_LINES]
