"""Version 1: sessions, their events, approvals, and small values."""

# `num` stands for a session inside the file: events and asks repeat it, and a number is shorter
# than an id. `leaf` is kept by hand (create, delete) so that a list of leaves needs no search.
STATEMENTS = (
    """
    CREATE TABLE sessions (
        num INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        owner TEXT,
        epoch INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        status TEXT NOT NULL,
        archived INTEGER NOT NULL,
        leaf INTEGER NOT NULL,
        agent TEXT NOT NULL,
        cwd TEXT NOT NULL,
        parent TEXT,
        origin TEXT NOT NULL,
        run_id TEXT,
        key TEXT,
        title TEXT NOT NULL,
        query TEXT NOT NULL,
        info BLOB NOT NULL
    )
    """,
    "CREATE INDEX sessions_recent ON sessions (updated_at, id)",
    "CREATE INDEX sessions_cwd ON sessions (cwd, updated_at, id)",
    "CREATE INDEX sessions_status ON sessions (status, updated_at, id)",
    "CREATE INDEX sessions_agent ON sessions (agent, updated_at, id)",
    "CREATE INDEX sessions_archived ON sessions (archived, updated_at, id)",
    "CREATE INDEX sessions_leaf ON sessions (updated_at, id) WHERE leaf = 1",
    "CREATE INDEX sessions_parent ON sessions (parent, updated_at, id) WHERE parent IS NOT NULL",
    "CREATE INDEX sessions_run_id ON sessions (run_id, created_at) WHERE run_id IS NOT NULL",
    "CREATE INDEX sessions_key ON sessions (key, created_at) WHERE key IS NOT NULL",
    """
    CREATE TABLE events (
        gseq INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (num) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body BLOB NOT NULL,
        UNIQUE (session, seq)
    )
    """,
    """
    CREATE TABLE asks (
        num INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        session INTEGER NOT NULL REFERENCES sessions (num) ON DELETE CASCADE,
        pending INTEGER NOT NULL,
        at INTEGER NOT NULL,
        ask BLOB NOT NULL,
        settled BLOB,
        settled_at INTEGER
    )
    """,
    "CREATE INDEX asks_session ON asks (session, at)",
    "CREATE INDEX asks_pending ON asks (at) WHERE pending = 1",
    """
    CREATE TABLE kv (
        space TEXT NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (space, key)
    ) WITHOUT ROWID
    """,
    # The newest gseq given out. Its own row, so that a number is never used twice, also after the
    # newest events were deleted; one update per batch is cheaper than AUTOINCREMENT per event.
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO counters VALUES ('gseq', 0)",
)
