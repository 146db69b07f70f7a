"""The sub-commands of `dragoman sessions`."""

from ..parse import Arg, Command, Flag


def subs() -> tuple[Command, ...]:
    session = Arg("session", "the session's id, or enough of its beginning")
    return (
        Command(
            "list",
            "sessions, newest first",
            example="dragoman sessions list --limit 5",
            flags=(
                Flag("limit", "at most so many", kind=int, default=50),
                Flag("status", "only those with this status", metavar="STATUS"),
                Flag("archived", "archived ones too", kind=bool),
            ),
        ),
        Command("show", "one session", example="dragoman sessions show ses_1a2b", args=(session,)),
        Command(
            "tail",
            "the events of a session",
            example="dragoman sessions tail ses_1a2b -f --after 120",
            args=(session,),
            flags=(
                Flag("follow", "go on with what comes", kind=bool, short="f"),
                Flag("after", "begin after this sequence number", kind=int, default=0),
            ),
        ),
        Command(
            "send",
            "send a prompt to a session",
            example='dragoman sessions send ses_1a2b "and now run the tests"',
            args=(session, Arg("prompt", "what to say", many=True)),
        ),
        Command(
            "cancel",
            "stop the turn that runs",
            example="dragoman sessions cancel ses_1a2b",
            args=(session,),
        ),
        Command(
            "rename",
            "give a session a title",
            example='dragoman sessions rename ses_1a2b "the login bug"',
            args=(session, Arg("title", "the new title", many=True)),
        ),
        Command(
            "fork",
            "begin a new session with the history of another",
            example="dragoman sessions fork ses_1a2b",
            args=(session,),
        ),
        Command(
            "archive",
            "take a session out of the list",
            example="dragoman sessions archive ses_1a2b",
            args=(session,),
            flags=(Flag("undo", "put it back", kind=bool),),
        ),
        Command(
            "export",
            "write a session to stdout or a file",
            example="dragoman sessions export ses_1a2b --format html --output talk.html",
            args=(session,),
            flags=(
                Flag("format", "of the text", choices=("json", "markdown", "html"), default="json"),
                Flag("output", "the file to write", metavar="FILE", short="o"),
            ),
        ),
        Command(
            "delete",
            "delete a session and its history for good",
            example="dragoman sessions delete ses_1a2b",
            args=(session,),
        ),
    )
