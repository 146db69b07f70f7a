"""The sub-commands of `dragoman sessions`."""

from ..parse import Arg, Command, Flag
from .shared import APPROVE, STATUSES, counted, positive


def subs() -> tuple[Command, ...]:
    session = Arg("session", "the session's id, or enough of its beginning")
    return (
        Command(
            "list",
            "sessions, newest first",
            example="dragoman sessions list --limit 5",
            flags=(
                Flag("limit", "at most so many", kind=positive, metavar="N", default=50),
                Flag("status", "only those with this status", metavar="STATUS", choices=STATUSES),
                Flag("archived", "archived ones too", kind=bool),
            ),
        ),
        Command("show", "one session", example="dragoman sessions show 5f3a9c1e", args=(session,)),
        Command(
            "tail",
            "the events of a session",
            example="dragoman sessions tail 5f3a9c1e -f --after 120",
            args=(session,),
            flags=(
                Flag("follow", "go on with what comes", kind=bool, short="f"),
                Flag("after", "begin after this number", kind=counted, metavar="N", default=0),
            ),
        ),
        Command(
            "send",
            "send a prompt to a session",
            example='dragoman sessions send 5f3a9c1e "and now run the tests"',
            args=(session, Arg("prompt", "what to say", many=True)),
            flags=(APPROVE, Flag("detach", "leave when the prompt is queued", kind=bool)),
            text="Without a terminal approvals are denied, unless --approve says otherwise; with\n"
            "--approve ask they then wait for another client. Exit code 3: the model refused, or\n"
            "its answer was cut.",
        ),
        Command(
            "cancel",
            "stop the turn that runs",
            example="dragoman sessions cancel 5f3a9c1e",
            args=(session,),
        ),
        Command(
            "rename",
            "give a session a title",
            example='dragoman sessions rename 5f3a9c1e "the login bug"',
            args=(session, Arg("title", "the new title", many=True)),
        ),
        Command(
            "fork",
            "begin a new session with the history of another",
            example="dragoman sessions fork 5f3a9c1e",
            args=(session,),
        ),
        Command(
            "archive",
            "take a session out of the list",
            example="dragoman sessions archive 5f3a9c1e",
            args=(session,),
            flags=(Flag("undo", "put it back", kind=bool),),
        ),
        Command(
            "undo",
            "put files back to before a turn changed them",
            example="dragoman sessions undo 5f3a9c1e",
            args=(session, Arg("turn", "the turn; left out: the last one", optional=True)),
            flags=(Flag("list", "show the turns that changed files", kind=bool),),
            text="Turns after it are undone with it. Nothing is put back when somebody else\n"
            "changed a file since; the difference is shown. Not covered: files that git ignores,\n"
            "very large ones, and what commands do outside of the session's folder.",
        ),
        Command(
            "redo",
            "take the last undo back",
            example="dragoman sessions redo 5f3a9c1e",
            args=(session,),
        ),
        Command(
            "worktree",
            "merge a session's git worktree into its repository, or drop it",
            example="dragoman sessions worktree merge 5f3a9c1e",
            args=(Arg("how", "merge or drop"), session),
            text="merge commits what is left in the worktree, merges its branch into what is\n"
            "checked out in the repository, and removes both; nothing happens on a conflict.\n"
            "drop throws the worktree and its branch away.",
        ),
        Command(
            "export",
            "write a session to stdout or a file",
            example="dragoman sessions export 5f3a9c1e --format html --output talk.html",
            args=(session,),
            flags=(
                Flag("format", "of the text", choices=("json", "markdown", "html"), default="json"),
                Flag("output", "the file to write", metavar="FILE", short="o"),
            ),
        ),
        Command(
            "delete",
            "delete a session and its history for good",
            example="dragoman sessions delete 5f3a9c1e",
            args=(session,),
        ),
    )
