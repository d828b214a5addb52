"""Rows of records.sqlite ↔ the library's records."""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from hipporag_torch.chat import Usage
from hipporag_torch.errors import ConfigError, StoreError
from hipporag_torch.types import Extraction, Fact, Passage, Sentence, Source, Triple

COLUMNS: dict[str, tuple[str, ...]] = {
    "passages": ("key", "text"),
    "sources": ("passage", "source", "position", "metadata", "start", "stop"),
    "extractions": ("passage", "status", "permanent", "producer", "content"),
    "phrases": ("text",),
    "facts": ("subject", "predicate", "object"),
}
"""The columns of each table of records that say something, without id, lifetime and digest."""

ALIVE = "born <= :generation AND (died IS NULL OR died > :generation)"
"""The condition for a row to be in generation `:generation`."""


@contextmanager
def legible(what: str) -> Iterator[None]:
    """Turn what Python makes of damaged records into `StoreError`."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, ConfigError) as error:
        raise StoreError(
            f"{what} cannot be read: {error}; they are damaged: run action=check, which names what is, "
            "or restore the index from a backup"
        ) from error


def insert(
    connection: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]], *, first_id: int, born: int
) -> None:
    """Add rows, in the order of `COLUMNS`, with ids that ascend from `first_id`."""
    names = ("id", *COLUMNS[table], "born", "digest")
    marks = ", ".join("?" * len(names))
    connection.executemany(
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})",  # noqa: S608
        (
            (number, *row, born, row_digest(table, number, row, born))
            for number, row in enumerate(rows, start=first_id)
        ),
    )


def bury(connection: sqlite3.Connection, table: str, ids: Iterable[int], *, died: int) -> None:
    """Let rows end with generation `died`."""
    connection.executemany(
        f"UPDATE {table} SET died = ? WHERE id = ?",  # noqa: S608
        ((died, number) for number in ids),
    )


def next_id(connection: sqlite3.Connection, table: str) -> int:
    (highest,) = connection.execute(f"SELECT max(id) FROM {table}").fetchone()  # noqa: S608
    return 1 if highest is None else highest + 1


def row_digest(table: str, number: int, row: Sequence[Any], born: int) -> bytes:
    """8 bytes that change with anything in the row but its end."""
    return hashlib.blake2b(repr((table, number, *row, born)).encode("utf-8"), digest_size=8).digest()


def passage_row(passage: Passage) -> tuple[Any, ...]:
    return passage.id, passage.text


def source_row(passage_number: int, source: Source) -> tuple[Any, ...]:
    metadata = _json(source.metadata)
    return passage_number, source.source_id, source.position, metadata, source.start, source.end


def extraction_row(passage_number: int, extraction: Extraction) -> tuple[Any, ...]:
    return (
        passage_number,
        extraction.status,
        int(extraction.permanent),
        extraction.producer,
        extraction_to_json(extraction),
    )


def fact_row(fact: Fact) -> tuple[Any, ...]:
    """The three columns of a fact; a sentence fills the first."""
    return (fact.text, None, None) if isinstance(fact, Sentence) else fact.parts


def fact_of_row(subject: str, predicate: str | None, object_: str | None) -> Fact:
    if predicate is None or object_ is None:
        return Sentence(subject)
    return Triple(subject, predicate, object_)


def extraction_to_json(extraction: Extraction) -> str:
    """All of an extraction; empty fields are left out."""
    content = {
        "entities": extraction.entities,
        "triples": [triple.parts for triple in extraction.triples],
        "sentences": [(sentence.text, names) for sentence, names in extraction.sentences],
        "status": extraction.status,
        "reason": extraction.reason,
        "producer": extraction.producer,
        "dropped": dict(extraction.dropped),
        "reply": extraction.reply,
        "permanent": extraction.permanent,
        "usage": {name: count for name, count in asdict(extraction.usage).items() if count},
    }
    return _json({name: value for name, value in content.items() if value})


def extraction_from_json(text: str) -> Extraction:
    with legible("extractions"):
        fields = json.loads(text)
        fields["entities"] = tuple(fields.get("entities", ()))
        fields["triples"] = tuple(Triple(*parts) for parts in fields.get("triples", ()))
        sentences = fields.get("sentences", ())
        fields["sentences"] = tuple((Sentence(said), tuple(names)) for said, names in sentences)
        fields["usage"] = Usage(**fields.get("usage", {}))
        return Extraction(**fields)


def read_passages(connection: sqlite3.Connection, generation: int) -> tuple[list[int], tuple[Passage, ...]]:
    """The ids of the rows and the passages of a generation, by ascending passage id."""
    sources: dict[int, list[Source]] = {}
    for number, source, position, metadata, start, stop in connection.execute(
        f"SELECT passage, source, position, metadata, start, stop FROM sources WHERE {ALIVE} ORDER BY source",  # noqa: S608
        {"generation": generation},
    ):
        with legible("sources"):
            found = json.loads(metadata) if metadata != "{}" else {}
        sources.setdefault(number, []).append(Source(source, position, found, start, stop))
    ids: list[int] = []
    passages: list[Passage] = []
    for number, key, text in _rows(connection, "passages", generation):
        ids.append(number)
        passages.append(Passage(key, text, tuple(sources.get(number, ()))))
    return ids, tuple(passages)


def read_phrases(connection: sqlite3.Connection, generation: int) -> tuple[list[int], tuple[str, ...]]:
    """The ids of the rows and the phrases of a generation, ascending."""
    rows = list(_rows(connection, "phrases", generation))
    return [row[0] for row in rows], tuple(row[1] for row in rows)


def read_facts(connection: sqlite3.Connection, generation: int) -> tuple[list[int], tuple[Fact, ...]]:
    """The ids of the rows and the facts of a generation, ascending."""
    rows = list(_rows(connection, "facts", generation))
    return [row[0] for row in rows], tuple(fact_of_row(*row[1:]) for row in rows)


def read_failed(connection: sqlite3.Connection, generation: int) -> dict[str, bool]:
    """The ids of the passages whose extraction failed, and whether that is permanent."""
    rows = connection.execute(
        "SELECT passages.key, permanent FROM extractions JOIN passages ON passages.id = extractions.passage "
        "WHERE status = 'failed' AND extractions.born <= :generation "
        "AND (extractions.died IS NULL OR extractions.died > :generation) ORDER BY passages.key",
        {"generation": generation},
    )
    return {key: bool(permanent) for key, permanent in rows}


def read_extractions(connection: sqlite3.Connection, generation: int) -> dict[int, Extraction]:
    """The extractions of a generation by the number of their passage's row."""
    rows = connection.execute(
        f"SELECT passage, content FROM extractions WHERE {ALIVE}",  # noqa: S608
        {"generation": generation},
    )
    return {number: extraction_from_json(content) for number, content in rows}


def _json(value: object) -> str:
    """JSON that SQLite takes: half of a surrogate pair, which models do write, stays escaped."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def _rows(connection: sqlite3.Connection, table: str, generation: int) -> Iterator[tuple[Any, ...]]:
    columns = ", ".join(COLUMNS[table])
    order = columns if table != "passages" else "key"
    # SQLite compares text byte by byte in UTF-8, which is Python's order of code points.
    return connection.execute(
        f"SELECT id, {columns} FROM {table} WHERE {ALIVE} ORDER BY {order}",  # noqa: S608
        {"generation": generation},
    )
