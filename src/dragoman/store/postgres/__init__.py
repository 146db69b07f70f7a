"""Sessions in a PostgreSQL database that several machines may share."""

from .store import PostgresStore as PostgresStore
