"""Verifying an index: every digest that live data depends on, every count, the graph against its records."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from hipporag_torch.connections import connect
from hipporag_torch.errors import StoreError
from hipporag_torch.index import Vocabulary
from hipporag_torch.maintenance import Finding
from hipporag_torch.ops.pairs import similar_pairs
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.store import records
from hipporag_torch.store.disk import digest_of_file
from hipporag_torch.store.embedders import (
    ARRAYS,
    EmbedderRow,
    damaged_segments,
    read_embedders,
    read_vector_rows,
)
from hipporag_torch.store.seal import is_sealed
from hipporag_torch.store.snapshot import (
    Snapshot,
    current_generation,
    read_options,
    read_snapshot,
)
from hipporag_torch.store.vectors import Kind, text_key

REPAIR = "run action=repair, which builds it again from the records"
EMBED = "run action=repair with that embedder"
RESTORE = "restore the index from a backup, or build it again"
SEALED = "options"
"""The part of an index whose tables have no digest for each row."""
ADD_AGAIN = "remove these passages by their ids, then add their documents again"


@dataclass(frozen=True)
class DamagedRow:
    """A live record whose digest does not fit what it says."""

    table: str
    id: int
    passage: str


def check_records(connection: sqlite3.Connection) -> Iterator[Finding]:
    """The database file, the small tables, and every live row of the others against its digest and number."""
    problems = [row[0] for row in connection.execute("PRAGMA integrity_check(10)")]
    if problems != ["ok"]:
        yield Finding("records", f"SQLite finds the file damaged: {'; '.join(problems)}", RESTORE)
    if not is_sealed(connection):
        yield Finding(SEALED, "the options, embedders or segments are not what was written", RESTORE)
    generation = current_generation(connection)
    counted = connection.execute(
        f"SELECT {', '.join(records.COLUMNS)} FROM generations WHERE number = ?",  # noqa: S608
        (generation,),
    ).fetchone()
    for table, expected in zip(records.COLUMNS, counted, strict=True):
        (alive,) = connection.execute(
            f"SELECT count(*) FROM {table} WHERE {records.ALIVE}",  # noqa: S608
            {"generation": generation},
        ).fetchone()
        if alive != expected:
            problem = f"{alive} rows of {table}, expected {expected}"
            yield Finding(table, problem, RESTORE if table in ("passages", "sources") else REPAIR)
    damaged = damaged_rows(connection)
    for table in records.COLUMNS:
        ids = tuple(row.passage for row in damaged if row.table == table)
        if ids:
            way_out = ADD_AGAIN if table in ("passages", "sources") else REPAIR
            yield Finding(table, f"{len(ids)} rows are not what was written", way_out, ids)


def damaged_rows(connection: sqlite3.Connection) -> list[DamagedRow]:
    """The rows that have not died whose digest or, for a passage, whose id does not fit its content."""
    generation = current_generation(connection)
    text, _ = read_options(connection)
    keys: dict[int, str] = dict(connection.execute("SELECT id, key FROM passages"))
    damaged: list[DamagedRow] = []
    for table, columns in records.COLUMNS.items():
        rows = connection.execute(
            f"SELECT id, born, digest, {', '.join(columns)} FROM {table} "  # noqa: S608
            "WHERE died IS NULL OR died > :generation ORDER BY id",
            {"generation": generation},
        )
        for number, born, digest, *row in rows:
            whole = records.row_digest(table, number, row, born) == digest
            if table == "passages":
                whole = whole and isinstance(row[1], str) and text.passage_id(row[1]) == row[0]
            if not whole:
                owner = number if table == "passages" else row[0]
                named = keys.get(owner, str(owner)) if table not in ("phrases", "facts") else str(number)
                damaged.append(DamagedRow(table, number, named))
    return damaged


def damaged_vectors(
    directory: Path, connection: sqlite3.Connection, embedder: EmbedderRow
) -> dict[Kind, list[tuple[int, int]]]:
    """The runs of finished rows, by kind, whose digest does not fit; a file that is gone is all damaged."""
    damaged: dict[Kind, list[tuple[int, int]]] = {}
    for kind, held in read_vector_rows(directory, connection, embedder).items():
        try:
            damaged[kind] = damaged_segments(connection, embedder, kind, held)
        except StoreError:
            damaged[kind] = [(0, held.finished)]
    return damaged


def check_embedder(
    directory: Path,
    connection: sqlite3.Connection,
    row: EmbedderRow,
    progress: Progress,
    *,
    quick: bool,
    readable: bool,
) -> Iterator[Finding]:
    """The arrays and vectors of one embedder, and its graph against the records if these are `readable`."""
    path = directory / ARRAYS / row.arrays
    if not path.is_file():
        yield Finding("arrays", f"{path.name} is missing", REPAIR, (path.name,))
        readable = False
    elif path.stat().st_size != row.arrays_bytes or digest_of_file(path) != row.arrays_digest:
        yield Finding("arrays", f"{path.name} is not what was written", REPAIR, (path.name,))
        readable = False
    snapshot = None
    if readable:
        try:
            snapshot = read_snapshot(directory, connection, row, write=False)
        except StoreError as error:
            yield Finding("vectors", str(error), EMBED, (path.name,))
    with nullcontext() if snapshot is None else closing(snapshot):
        for kind, segments in damaged_vectors(directory, connection, row).items():
            used = snapshot.vector_rows[kind] if snapshot is not None else None
            hit = [
                f"{start}-{stop}"
                for start, stop in segments
                if used is None or bool(((used >= start) & (used < stop)).any())
            ]
            if hit:
                problem = f"{kind} vectors of {row.identity.name} are not what was written: {', '.join(hit)}"
                yield Finding("vectors", problem, EMBED, tuple(hit))
        if snapshot is not None:
            yield from check_keys(directory, connection, snapshot)
            yield from check_graph(directory, connection, snapshot, progress, quick=quick)


def check_keys(directory: Path, connection: sqlite3.Connection, snapshot: Snapshot) -> Iterator[Finding]:
    """Whether each row of the index has the vector of its own text."""
    index = snapshot.index
    texts: dict[Kind, Iterable[str]] = {
        "passage": (passage.text for passage in index.passages),
        "phrase": index.phrases,
        "fact": map(index.text.fact_text, index.facts),
    }
    for kind, held in read_vector_rows(directory, connection, snapshot.embedder).items():
        if not held.file.keys_path.is_file():
            continue  # found already
        keys = held.file.keys(held.finished)
        rows = snapshot.vector_rows[kind].tolist()
        wrong = [
            row
            for row, text in zip(rows, texts[kind], strict=True)
            if row < len(keys) and keys[row].tobytes() != text_key(text)
        ]
        if wrong:
            problem = f"{len(wrong)} {kind}s have the vectors of other texts"
            yield Finding("vectors", problem, EMBED, tuple(map(str, wrong)))


def check_graph(
    directory: Path, connection: sqlite3.Connection, snapshot: Snapshot, progress: Progress, *, quick: bool
) -> Iterator[Finding]:
    """Phrases, facts, statements, synonyms and graph against what the extractions and vectors give."""
    index = snapshot.index
    passages = dict(zip(snapshot.ids["passages"].tolist(), range(len(index.passages)), strict=True))
    found = records.read_extractions(connection, snapshot.generation)
    if found.keys() != passages.keys():
        lost = len(passages.keys() - found.keys())
        yield Finding("extractions", f"{lost} passages have no extraction", REPAIR)
        return
    vocabulary = Vocabulary.of([found[number] for number in passages], index.text)
    for part in ("phrases", "facts"):
        if getattr(vocabulary, part) != getattr(index, part):
            yield Finding(part, f"the {part} are not those of the extractions", REPAIR)
            return
    if not _equal(vocabulary.statements, index.statements):
        yield Finding("graph", "the statements are not those of the extractions", REPAIR)
        return
    synonyms = index.synonyms
    if not quick:
        threshold = index.graph_options.synonym_threshold
        synonyms = similar_pairs(index.phrase_emb, threshold=threshold, progress=progress)
        if not _equal(synonyms, index.synonyms):
            yield Finding("graph", "the synonyms are not those of the phrases' vectors", REPAIR)
    if not (
        _equal(vocabulary.lexicon.phrase_tokens, index.lexicon.phrase_tokens)
        and _equal(vocabulary.lexicon.fact_tokens, index.lexicon.fact_tokens)
    ):
        yield Finding("lexicon", "the words are not those of the phrases and facts", REPAIR)
    graph = connect(vocabulary, index.passages, synonyms, index.graph_options)
    if not _equal(graph.adjacency, index.graph.adjacency):
        yield Finding("graph", "the edges are not those of the records", REPAIR)


def check_all(
    directory: Path, connection: sqlite3.Connection, *, quick: bool = False, progress: Progress = no_progress
) -> list[Finding]:
    """Everything; `connection` must be within a transaction that reads."""
    findings = list(check_records(connection))
    if any(finding.part == SEALED for finding in findings):
        return findings
    # What damaged records give would be found different from all that was derived from the whole ones.
    readable = not findings
    generation = current_generation(connection)
    for row in read_embedders(connection):
        if row.generation == generation:
            findings += check_embedder(directory, connection, row, progress, quick=quick, readable=readable)
    return findings


def _equal(a: Any, b: Any) -> bool:
    """Whether two records of tensors are the same to the bit."""
    # Not vars(): what one of them has worked out and kept need not be in the other.
    names = [field.name for field in fields(a) if isinstance(getattr(a, field.name), torch.Tensor)]
    return all(torch.equal(getattr(a, name), getattr(b, name)) for name in names)
