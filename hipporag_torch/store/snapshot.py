"""One generation as it was read: an index, and where its rows stand on the disk."""

import gc
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from jaxtyping import Int64
from torch import Tensor

from hipporag_torch.connections import connect
from hipporag_torch.errors import CompatibilityError, StoreError
from hipporag_torch.graph_construction import AnyGraphOptions
from hipporag_torch.index import Extractions, Index, Vocabulary
from hipporag_torch.ops.pairs import Pairs
from hipporag_torch.protocols import EmbedderIdentity
from hipporag_torch.store import records
from hipporag_torch.store.arrays import VectorRows, read_arrays
from hipporag_torch.store.database import opened
from hipporag_torch.store.disk import digest_of_file
from hipporag_torch.store.embedders import ARRAYS, NOT_YET, EmbedderRow, read_embedders, read_vector_rows
from hipporag_torch.store.identity import graph_from_json, text_from_json
from hipporag_torch.store.locks import hold
from hipporag_torch.store.vectors import KINDS, Kind
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Extraction, Fact, Passage

RowIds = dict[str, Int64[Tensor, " rows"]]
"""For the tables passages, phrases and facts, the id of the record of each row of the index."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A generation in memory. `held` keeps its file of arrays from being deleted until it is closed."""

    generation: int
    embedder: EmbedderRow
    index: Index
    ids: RowIds
    vector_rows: VectorRows
    held: BinaryIO | None = None

    def close(self) -> None:
        if self.held is not None:
            self.held.close()


def current_generation(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute("SELECT max(number) FROM generations").fetchone()
    if number is None:
        raise StoreError("the index has no generation: its records are damaged; restore it from a backup")
    return number


def read_options(connection: sqlite3.Connection) -> tuple[TextOptions, AnyGraphOptions]:
    """The text and the graph options that the index was built with."""
    with records.legible("the index's options"):
        properties = dict(connection.execute("SELECT name, value FROM properties"))
        return text_from_json(properties["text"]), graph_from_json(properties["graph"])


def choose_embedder(
    connection: sqlite3.Connection, directory: Path, identity: EmbedderIdentity | None
) -> EmbedderRow:
    """The row of the stated embedder, or of the main one.

    Raises `CompatibilityError` if the index has no vectors of it, or not of all that the index now holds.
    """
    rows = [row for row in read_embedders(connection) if row.generation != NOT_YET]
    chosen = next((row for row in rows if (row.main if identity is None else row.identity == identity)), None)
    if chosen is None and identity is None:
        raise StoreError(
            f"{directory} has no main embedder: its records are damaged; restore it from a backup, or "
            "state one of its embedders"
        )
    if chosen is None:
        known = "; ".join(str(row.identity) for row in rows)
        raise CompatibilityError(
            f"the index {directory} has vectors of {known}, but the embedder {identity} was stated; state "
            "one of those or none, add vectors of this one with reembed (extractions are kept, no language "
            "model is asked), or use another directory"
        )
    generation = current_generation(connection)
    if chosen.generation != generation:
        raise CompatibilityError(
            f"the vectors of the embedder {chosen.identity} in {directory} stop at generation "
            f"{chosen.generation}, the index has been changed with another one and is at {generation}; "
            "reembed with it (only what is missing is embedded), or state the other embedder"
        )
    return chosen


def read_snapshot(
    directory: Path, connection: sqlite3.Connection, embedder: EmbedderRow, *, write: bool
) -> Snapshot:
    """The generation that `embedder` has last taken part in; `connection` must be within a transaction.

    write: whether reading extractions later may roll back what a crash of another process left.
    """
    generation = embedder.generation
    path = directory / ARRAYS / embedder.arrays
    try:
        held = hold(path)
    except OSError as error:
        raise StoreError(
            f"the arrays {path} of generation {generation} cannot be read: {error.strerror}; run "
            "action=repair, which builds them again from the records"
        ) from error
    with ExitStack() as stack:
        stack.callback(held.close)
        # The next generation's are made from these, and would have a digest that fits again.
        if digest_of_file(path) != embedder.arrays_digest:
            raise StoreError(
                f"the arrays {path} of generation {generation} cannot be read: they are not what was "
                "written; run action=repair, which builds them again from the records"
            )
        ids, passages, phrases, facts = _read_rows(connection, generation)
        arrays = read_arrays(
            path,
            about=embedder.about(generation),
            num_passages=len(passages),
            num_phrases=len(phrases),
            num_facts=len(facts),
        )
        text, graph_options = read_options(connection)
        emb = _read_vectors(directory, connection, embedder, arrays.vector_rows)
        index = Index(
            embedder=embedder.identity,
            text=text,
            graph_options=graph_options,
            passages=passages,
            extractions=stored_extractions(directory, generation, ids["passages"], write=write),
            failed=records.read_failed(connection, generation),
            phrases=phrases,
            facts=facts,
            statements=arrays.statements,
            lexicon=arrays.lexicon,
            passage_emb=emb["passage"],
            phrase_emb=emb["phrase"],
            fact_emb=emb["fact"],
            synonyms=arrays.synonyms,
            graph=arrays.graph,
        )
        stack.pop_all()
    return Snapshot(generation, embedder, index, ids, arrays.vector_rows, held)


def read_bare_snapshot(directory: Path, connection: sqlite3.Connection, embedder: EmbedderRow) -> Snapshot:
    """The last generation as its records alone tell it: all that is derived is empty, no vector has a row."""
    generation = current_generation(connection)
    text, graph_options = read_options(connection)
    ids, passages, phrases, facts = _read_rows(connection, generation)
    nothing = torch.empty(0, embedder.identity.dim)
    nothing_said = Vocabulary.of((), text)
    index = Index(
        embedder=embedder.identity,
        text=text,
        graph_options=graph_options,
        passages=passages,
        extractions=stored_extractions(directory, generation, ids["passages"], write=True),
        failed=records.read_failed(connection, generation),
        phrases=phrases,
        facts=facts,
        statements=nothing_said.statements,
        lexicon=nothing_said.lexicon,
        passage_emb=nothing,
        phrase_emb=nothing,
        fact_emb=nothing,
        synonyms=Pairs.none(),
        graph=connect(nothing_said, (), Pairs.none(), graph_options),
    )
    vector_rows: VectorRows = {
        "passage": torch.full((len(passages),), -1),
        "phrase": torch.full((len(phrases),), -1),
        "fact": torch.full((len(facts),), -1),
    }
    return Snapshot(generation, embedder, index, ids, vector_rows)


def stored_extractions(
    directory: Path, generation: int, passage_ids: Int64[Tensor, " passages"], *, write: bool
) -> Extractions:
    """The extractions of a generation, read when the first is asked for."""

    def read() -> Mapping[int, Extraction]:
        with opened(directory, write=write) as connection:
            found = records.read_extractions(connection, generation)
        numbers = passage_ids.tolist()
        if missing := [number for number in numbers if number not in found]:
            raise StoreError(
                f"{directory} has no extraction of {len(missing)} passages in generation {generation}; run "
                "action=check, and action=repair with the extractor"
            )
        return {row: found[number] for row, number in enumerate(numbers)}

    return Extractions(count=len(passage_ids), fresh={}, stored=read)


def _read_rows(
    connection: sqlite3.Connection, generation: int
) -> tuple[RowIds, tuple[Passage, ...], tuple[str, ...], tuple[Fact, ...]]:
    with _uncollected():
        passage_ids, passages = records.read_passages(connection, generation)
        phrase_ids, phrases = records.read_phrases(connection, generation)
        fact_ids, facts = records.read_facts(connection, generation)
    numbers = {"passages": passage_ids, "phrases": phrase_ids, "facts": fact_ids}
    ids = {table: torch.tensor(ids, dtype=torch.int64) for table, ids in numbers.items()}
    return ids, passages, phrases, facts


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection while many small objects are made: each would look at all that are there.

    At 20,000 passages it took half of the time of opening.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read_vectors(
    directory: Path, connection: sqlite3.Connection, embedder: EmbedderRow, rows: VectorRows
) -> dict[Kind, Tensor]:
    files = read_vector_rows(directory, connection, embedder)
    emb: dict[Kind, Tensor] = {}
    for kind in KINDS:
        if kind in files:
            emb[kind] = files[kind].file.read(rows[kind], files[kind].finished)
        elif not len(rows[kind]):
            emb[kind] = torch.empty(0, embedder.identity.dim)
        else:
            raise StoreError(
                f"{directory} has no file of {kind} vectors of {embedder.identity}; run action=check"
            )
    return emb
