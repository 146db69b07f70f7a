"""What the two roles of a fleet may do: a `host` works with sessions, a `front` reads them and
writes commands and answers down. Neither changes the tables themselves.
"""

from typing import TYPE_CHECKING, Any, Literal

from dragoman.engine.faults import BadInput

if TYPE_CHECKING:
    from asyncpg import Connection

Role = Literal["host", "front"]
ROLES: tuple[Role, ...] = ("host", "front")
TABLES = ("sessions", "events", "asks", "kv", "counters", "nodes", "commands", "words")
ALL = ", ".join((*TABLES, "dragoman_schema"))
_GRANTS: dict[Role, tuple[str, ...]] = {
    "host": (f"GRANT SELECT, INSERT, UPDATE, DELETE ON {', '.join(TABLES)} TO {{role}}",),
    # Of a command it says what is wanted, never that it was done.
    "front": ("GRANT INSERT (id, session, sender, kind, body) ON commands TO {role}",),
}


async def grant(connection: "Connection[Any]", role: str, kind: Role) -> None:
    """Let a role of the database do what a kind of node does, and no more. Raises BadInput."""
    quoted = await connection.fetchval(
        "SELECT quote_ident(rolname) FROM pg_roles WHERE rolname = $1", role
    )
    if quoted is None:
        raise BadInput(
            f"The database has no role {role}.",
            f"""Make it first: CREATE ROLE "{role}" LOGIN PASSWORD '…'.""",
        )
    schema = await connection.fetchval("SELECT quote_ident(current_schema())")
    async with connection.transaction():
        await connection.execute(f"REVOKE ALL ON {ALL} FROM {quoted}")
        await connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {quoted}")
        await connection.execute(f"GRANT SELECT ON {ALL} TO {quoted}")
        for statement in _GRANTS[kind]:
            await connection.execute(statement.format(role=quoted))


async def kind_of(connection: "Connection[Any]") -> tuple[Role | None, list[str]]:
    """Which kind the role of this connection is; None: neither, and which tables it lacks."""
    lacking = [
        table
        for table in TABLES
        if not await connection.fetchval(
            "SELECT has_table_privilege($1, 'SELECT')"
            " AND has_table_privilege($1, 'INSERT') AND has_table_privilege($1, 'UPDATE')"
            " AND has_table_privilege($1, 'DELETE')",
            table,
        )
    ]
    if not lacking:
        return "host", []
    reads = all(
        [await connection.fetchval("SELECT has_table_privilege($1, 'SELECT')", t) for t in TABLES]
    )
    tells = await connection.fetchval("SELECT has_column_privilege('commands', 'body', 'INSERT')")
    return ("front" if reads and tells else None), lacking
