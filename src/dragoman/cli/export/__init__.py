"""Sessions as documents: the events of a session made into a story, written in several forms."""
