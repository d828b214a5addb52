"""One change of a durable index: what it stages as it goes, and the commit that publishes it."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from hipporag_torch.errors import StoreError
from hipporag_torch.index import Index
from hipporag_torch.store import records
from hipporag_torch.store.arrays import VectorRows, write_arrays
from hipporag_torch.store.database import transaction
from hipporag_torch.store.differences import Difference, difference
from hipporag_torch.store.disk import digest_of_file, publish
from hipporag_torch.store.embedders import (
    ARRAYS,
    EmbedderRow,
    VectorRow,
    advance_embedder,
    damaged_segments,
    drop_others,
    read_embedders,
    read_vector_rows,
    vector_file,
)
from hipporag_torch.store.identity import graph_to_json
from hipporag_torch.store.locks import hold
from hipporag_torch.store.seal import seal
from hipporag_torch.store.snapshot import Snapshot, read_snapshot, stored_extractions
from hipporag_torch.store.vectors import KINDS, Kind, text_key
from hipporag_torch.types import Extraction


@dataclass
class Session:
    """The writer's view of an index. The writer lock is held for as long as it lives.

    `snapshot` is the last generation. Vectors and extractions that are staged are durable at once and in
    no generation; `commit` puts those that the new index needs into one.
    """

    directory: Path
    connection: sqlite3.Connection
    snapshot: Snapshot
    embedder: EmbedderRow
    _spare: dict[Kind, dict[bytes, int]] = field(default_factory=dict)
    """Text key → row of finished vectors that the snapshot does not name: staged, or of texts that went."""

    def __post_init__(self) -> None:
        files = self._files()
        for kind in KINDS:
            named = self.snapshot.vector_rows[kind]
            self._spare[kind] = files[kind].file.unnamed(named, files[kind].finished) if kind in files else {}

    def staged_vectors(
        self, kind: Kind, texts: Sequence[str]
    ) -> tuple[Bool[Tensor, " texts"], Float32[Tensor, "texts dim"]]:
        """Which texts have a vector that was paid for already, and these; zeros for the others."""
        rows = torch.tensor([self._spare[kind].get(text_key(text), -1) for text in texts]).long()
        emb = torch.zeros(len(texts), self.embedder.identity.dim)
        if damaged := self._damaged(kind, rows[rows >= 0]):
            self.distrust(kind, damaged, file=False)
            return self.staged_vectors(kind, texts)
        if bool((rows >= 0).any()):
            held = self._files()[kind]
            emb[rows >= 0] = held.file.read(rows[rows >= 0], held.finished)
        return rows >= 0, emb

    def _damaged(self, kind: Kind, rows: Int64[Tensor, " rows"]) -> list[tuple[int, int]]:
        """Segments among those of `rows` that are not what was written: nobody reads what is spare."""
        if not len(rows):
            return []
        return damaged_segments(self.connection, self.embedder, kind, self._files()[kind], rows)

    def stage_vectors(
        self, kind: Kind, texts: Sequence[str], emb: Float32[Tensor, "texts dim"]
    ) -> Float32[Tensor, "texts dim"]:
        """Make the vectors of some texts durable; they come back as reading will give them."""
        held = self._files().get(kind)
        name = f"{self.embedder.id}-{kind}-{self.snapshot.generation + 1}.rows"
        file = vector_file(self.directory, self.embedder, kind, name) if held is None else held.file
        start = 0 if held is None else held.finished
        stop = start + len(texts)
        keys = [text_key(text) for text in texts]
        digest = file.append(keys, emb, start)
        with transaction(self.connection):
            self.connection.execute(
                "INSERT OR REPLACE INTO vector_files VALUES (?, ?, ?, ?)",
                (self.embedder.id, kind, file.path.name, stop),
            )
            self.connection.execute(
                "INSERT INTO segments VALUES (?, ?, ?, ?, ?)", (self.embedder.id, kind, start, stop, digest)
            )
            seal(self.connection)
        self._spare[kind].update(zip(keys, range(start, stop), strict=True))
        return file.rounded(emb)

    def staged_extractions(self, producer: str, passage_ids: Sequence[str]) -> dict[str, Extraction]:
        """The staged extractions of `producer` among some passages."""
        wanted = set(passage_ids)
        rows = self.connection.execute(
            "SELECT passage, content FROM staged_extractions WHERE producer = ?", (producer,)
        )
        return {key: records.extraction_from_json(content) for key, content in rows if key in wanted}

    def stage_extractions(self, extractions: Mapping[str, Extraction]) -> None:
        """Make extractions durable, by passage id."""
        with transaction(self.connection):
            self.connection.executemany(
                "INSERT OR REPLACE INTO staged_extractions VALUES (?, ?, ?)",
                (
                    (key, extraction.producer, records.extraction_to_json(extraction))
                    for key, extraction in extractions.items()
                ),
            )

    def require_file(self, kind: Kind) -> None:
        """Raise `StoreError` unless the file of a kind is there, is the right one and is long enough."""
        held = self._files()[kind]
        held.file.check_shape(held.finished)
        held.file.check_keys(held.finished)

    def reread(self) -> Snapshot:
        """The last generation, read again after its files were written anew."""
        row = next(row for row in read_embedders(self.connection) if row.id == self.embedder.id)
        return read_snapshot(self.directory, self.connection, row, write=True)

    def distrust(self, kind: Kind, segments: Sequence[tuple[int, int]], *, file: bool) -> None:
        """Take no vector from some runs of rows any more; with `file` from none, and begin a new file."""
        self._spare[kind] = {
            key: row
            for key, row in self._spare[kind].items()
            if not file and not any(start <= row < stop for start, stop in segments)
        }
        if file:
            with transaction(self.connection):
                for table in ("vector_files", "segments"):
                    self.connection.execute(
                        f"DELETE FROM {table} WHERE embedder = ? AND kind = ?",  # noqa: S608
                        (self.embedder.id, kind),
                    )
                seal(self.connection)

    def commit(self, index: Index, action: str, damaged: Sequence[tuple[str, int]] = ()) -> Snapshot:
        """Publish `index` as the next generation, in one transaction.

        damaged: records, by table and id, that are buried whatever they say.

        What is staged for passages of the new index has done its work and goes; the rest stays staged.
        """
        old = self.snapshot
        generation = old.generation + 1
        change = _Change.between(old.index, index)
        vector_rows = self.vector_rows(index, change)
        embedder = self._publish_arrays(index, vector_rows, generation)
        with transaction(self.connection):
            self._unstage(index)
            for table, number in damaged:
                records.bury(self.connection, table, [number], died=generation)
            ids = self._write_records(index, change, generation)
            advance_embedder(self.connection, embedder)
            self._count(index, generation, action)
            self.connection.execute(
                "UPDATE properties SET value = ? WHERE name = 'graph'", (graph_to_json(index.graph_options),)
            )
            seal(self.connection)
        return self._moved_to(index, embedder, ids, vector_rows)

    def join(self, index: Index) -> Snapshot:
        """Let this session's embedder take part in the last generation, whose records `index` has."""
        change = _Change.between(self.snapshot.index, index)
        vector_rows = self.vector_rows(index, change)
        embedder = self._publish_arrays(index, vector_rows, self.snapshot.generation)
        with transaction(self.connection):
            advance_embedder(self.connection, embedder)
            drop_others(self.connection, embedder)
            seal(self.connection)
        return self._moved_to(index, embedder, self.snapshot.ids, vector_rows)

    def _publish_arrays(self, index: Index, vector_rows: VectorRows, generation: int) -> EmbedderRow:
        """Write the file of arrays; the embedder's row that will name it."""
        folder, stem = self.directory / ARRAYS, f"{generation}-{self.embedder.id}"
        # A file that is there may be held by readers, whom `compact` finds by its name alone.
        names = (f"{stem}{again}.safetensors" for again in chain([""], map("-{}".format, count(2))))
        name = next(name for name in names if not (folder / name).exists())
        path = folder / name
        about = self.embedder.about(generation)
        publish(path, lambda partial: write_arrays(partial, index, vector_rows, about=about))
        return replace(
            self.embedder,
            main=True,
            generation=generation,
            arrays=name,
            arrays_bytes=path.stat().st_size,
            arrays_digest=digest_of_file(path),
        )

    def _moved_to(
        self, index: Index, embedder: EmbedderRow, ids: dict[str, Tensor], vector_rows: VectorRows
    ) -> Snapshot:
        extractions = stored_extractions(self.directory, embedder.generation, ids["passages"], write=True)
        self.embedder = embedder
        self.snapshot = Snapshot(
            embedder.generation,
            embedder,
            replace(index, extractions=extractions),
            ids,
            vector_rows,
            hold(self.directory / ARRAYS / embedder.arrays),
        )
        return self.snapshot

    def vector_rows(self, index: Index, change: "_Change") -> VectorRows:
        """Where the vectors of `index` stand: where they stood, or where they were staged."""
        texts: dict[Kind, Any] = {
            "passage": lambda row: index.passages[row].text,
            "phrase": lambda row: index.phrases[row],
            "fact": lambda row: index.text.fact_text(index.facts[row]),
        }
        found: VectorRows = {}
        moves: dict[Kind, Difference] = {
            "passage": change.passages,
            "phrase": change.phrases,
            "fact": change.facts,
        }
        for kind, moved in moves.items():
            rows = moved.old_row.clone()
            known = rows >= 0
            rows[known] = self.snapshot.vector_rows[kind][rows[known]]
            for row in (rows < 0).nonzero()[:, 0].tolist():
                rows[row] = self._spare_row(kind, texts[kind](row))
            found[kind] = rows
        return found

    def _spare_row(self, kind: Kind, text: str) -> int:
        try:
            return self._spare[kind][text_key(text)]
        except KeyError:
            raise StoreError(
                f"the {kind} {text!r:.80} of the new index has no vector in {self.directory}; its vectors "
                "must be made by the embedder that the session stages"
            ) from None

    def _files(self) -> dict[Kind, VectorRow]:
        return read_vector_rows(self.directory, self.connection, self.embedder)

    def _write_records(self, index: Index, change: "_Change", generation: int) -> dict[str, Tensor]:
        """Bury what is gone and add what is new; the ids of the new index's rows."""
        connection, old = self.connection, self.snapshot
        ids: dict[str, Tensor] = {}
        new_rows: dict[str, tuple[Difference, list[tuple[Any, ...]]]] = {
            "passages": (
                change.passages,
                [records.passage_row(index.passages[row]) for row in change.passages.fresh],
            ),
            "phrases": (change.phrases, [(index.phrases[row],) for row in change.phrases.fresh]),
            "facts": (change.facts, [records.fact_row(index.facts[row]) for row in change.facts.fresh]),
        }
        for table, (moved, rows) in new_rows.items():
            records.bury(connection, table, old.ids[table][moved.gone].tolist(), died=generation)
            first = records.next_id(connection, table)
            records.insert(connection, table, rows, first_id=first, born=generation)
            numbers = moved.old_row.clone()
            known = numbers >= 0
            numbers[known] = old.ids[table][numbers[known]]
            numbers[~known] = torch.arange(first, first + len(rows))
            ids[table] = numbers
        self._write_sources(index, change, ids["passages"], generation)
        self._write_extractions(index, change, ids["passages"], generation)
        return ids

    def _write_sources(self, index: Index, change: "_Change", ids: Tensor, generation: int) -> None:
        old = self.snapshot
        gone = [
            (int(old.ids["passages"][row]), s)
            for row in change.passages.gone.tolist()
            for s in old.index.passages[row].sources
        ]
        come: list[tuple[int, Any]] = []
        numbers = ids.tolist()
        for row, old_row in enumerate(change.passages.old_row.tolist()):
            number, passage = numbers[row], index.passages[row]
            if old_row < 0:
                come.extend((number, source) for source in passage.sources)
            elif passage is not (before := old.index.passages[old_row]):
                gone.extend((number, source) for source in before.sources if source not in passage.sources)
                come.extend((number, source) for source in passage.sources if source not in before.sources)
        self.connection.executemany(
            "UPDATE sources SET died = ? WHERE passage = ? AND source = ? AND died IS NULL",
            ((generation, number, source.source_id) for number, source in gone),
        )
        first = records.next_id(self.connection, "sources")
        rows = (records.source_row(number, source) for number, source in come)
        records.insert(self.connection, "sources", rows, first_id=first, born=generation)

    def _write_extractions(self, index: Index, change: "_Change", ids: Tensor, generation: int) -> None:
        old = self.snapshot
        fresh = index.extractions.fresh
        gone = [int(old.ids["passages"][row]) for row in change.passages.gone.tolist()]
        replaced = [int(ids[row]) for row in sorted(fresh) if int(change.passages.old_row[row]) >= 0]
        self.connection.executemany(
            "UPDATE extractions SET died = ? WHERE passage = ? AND died IS NULL",
            ((generation, number) for number in gone + replaced),
        )
        first = records.next_id(self.connection, "extractions")
        rows = (records.extraction_row(int(ids[row]), fresh[row]) for row in sorted(fresh))
        records.insert(self.connection, "extractions", rows, first_id=first, born=generation)

    def _unstage(self, index: Index) -> None:
        """Drop staged extractions that a generation has now; first, so that the records reuse their pages."""
        self.connection.executemany(
            "DELETE FROM staged_extractions WHERE passage = ?",
            ((index.passages[row].id,) for row in sorted(index.extractions.fresh)),
        )

    def _count(self, index: Index, generation: int, action: str) -> None:
        sources = sum(len(passage.sources) for passage in index.passages)
        self.connection.execute(
            "INSERT INTO generations VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                generation,
                action,
                len(index.passages),
                sources,
                len(index.passages),
                len(index.phrases),
                len(index.facts),
            ),
        )


@dataclass(frozen=True, eq=False)
class _Change:
    """How the rows of two indexes correspond."""

    passages: Difference
    phrases: Difference
    facts: Difference

    @staticmethod
    def between(old: Index, new: Index) -> "_Change":
        keys = [passage.id for passage in old.passages], [passage.id for passage in new.passages]
        return _Change(
            difference(*keys), difference(old.phrases, new.phrases), difference(old.facts, new.facts)
        )
