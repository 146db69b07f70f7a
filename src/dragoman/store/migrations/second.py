"""Version 2: a turn leaves the indexes alone, and a batch of events is one row.

Columns:
- A busy session is `hot`: `live_at` and `live_status` are true, while `updated_at` and `status` are
  as they were when it was last settled, so that none of the indexes with them moves while it is at
  work. Of a session that is not hot, `updated_at` and `status` are true, and nothing else is.

Without a change to their tables:
- A row of `events` with an empty kind holds several events, packed into its body; its numbers and
  time are those of the last one. Rows of version 1 hold one event each and stay as they are.
- The counter is at least the newest number among the events that were deleted; the newest number
  given out is that or the newest one in `events`, whichever is higher.
"""

STATEMENTS = (
    "ALTER TABLE sessions ADD COLUMN hot INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN live_at INTEGER",
    "ALTER TABLE sessions ADD COLUMN live_status TEXT",
    "CREATE INDEX sessions_hot ON sessions (num) WHERE hot = 1",
)
