"""A digest over the small tables, which no row digest covers."""

import hashlib
import sqlite3

_SEALED = {
    "properties": "name",
    "generations": "number",
    "embedders": "id",
    "vector_files": "embedder, kind",
    "segments": "embedder, kind, start",
}


def seal(connection: sqlite3.Connection) -> None:
    """Note the digest; the last act of each transaction that changes one of these tables."""
    connection.execute("DELETE FROM seal")
    connection.execute("INSERT INTO seal VALUES (?)", (_digest(connection),))


def is_sealed(connection: sqlite3.Connection) -> bool:
    """Whether the tables are as they were when they were sealed."""
    return connection.execute("SELECT digest FROM seal").fetchone() == (_digest(connection),)


def _digest(connection: sqlite3.Connection) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for table, order in _SEALED.items():
        for row in connection.execute(f"SELECT * FROM {table} ORDER BY {order}"):  # noqa: S608
            digest.update(repr((table, row)).encode("utf-8"))
    return digest.digest()
