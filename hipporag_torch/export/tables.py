"""The tables of an index as Arrow: their columns, their rows and how they are written."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from hipporag_torch.export.edges import edges_of, node_names
from hipporag_torch.index import Index
from hipporag_torch.types import Fact, Triple

# A row group holds at most so many rows, and so many numbers of vectors: 32 MB of float32.
_MAX_ROWS = 32_768
_MAX_NUMBERS = 8_000_000
_STRINGS = pa.list_(pa.string())


@dataclass(frozen=True)
class Table:
    """`rows` give the columns of `schema` in order, but for its last, `vector`, if there is `emb`."""

    name: str
    schema: pa.Schema
    rows: Iterator[tuple[Any, ...]]
    emb: Tensor | None = None


def tables_of(index: Index) -> tuple[Table, ...]:
    """All tables; their rows are made as they are written."""
    return (
        _table(index, "passages", _PASSAGES, _passages(index), index.passage_emb),
        _table(index, "sources", _SOURCES, _sources(index)),
        _table(index, "extractions", _EXTRACTIONS, _extractions(index)),
        _table(index, "phrases", _PHRASES, _phrases(index), index.phrase_emb),
        _table(index, "facts", _FACTS, _facts(index), index.fact_emb),
        _table(index, "statements", _STATEMENTS, _statements(index)),
        _table(index, "edges", _EDGES, _edges(index)),
    )


def write_table(table: Table, path: Path) -> None:
    """Write `table` to `path`, one row group at a time."""
    dim = 0 if table.emb is None else table.emb.shape[1]
    num_rows = max(1, min(_MAX_ROWS, _MAX_NUMBERS // max(1, dim)))
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        start = 0
        while rows := list(islice(table.rows, num_rows)):
            columns = zip(*rows, strict=True)
            # Fewer columns than fields where the last is the vector.
            arrays = [pa.array(c, type=f.type) for c, f in zip(columns, table.schema, strict=False)]
            if table.emb is not None:
                arrays.append(_vectors(table.emb[start : start + len(rows)]))
            writer.write_batch(pa.record_batch(arrays, schema=table.schema))
            start += len(rows)


_PASSAGES = {"id": pa.string(), "text": pa.string(), "status": pa.string(), "producer": pa.string()}
_SOURCES = {
    "passage_id": pa.string(),
    "source_id": pa.string(),
    "position": pa.int64(),
    "start": pa.int64(),
    "end": pa.int64(),
    "metadata": pa.string(),
}
_TRIPLE = {"subject": pa.string(), "predicate": pa.string(), "object": pa.string()}
_FACT = {**_TRIPLE, "sentence": pa.string()}
_SENTENCE = {"text": pa.string(), "names": _STRINGS}
_NULLABLE = frozenset({*_FACT, "cosine"})
_EXTRACTIONS = {
    "passage_id": pa.string(),
    "status": pa.string(),
    "reason": pa.string(),
    "reply": pa.string(),
    "producer": pa.string(),
    "permanent": pa.bool_(),
    "dropped": pa.string(),
    "entities": _STRINGS,
    "triples": pa.list_(pa.struct(list(_TRIPLE.items()))),
    "sentences": pa.list_(pa.struct(list(_SENTENCE.items()))),
}
_PHRASES = {"text": pa.string(), "passages": _STRINGS}
_FACTS = {**_FACT, "phrases": _STRINGS, "statements": pa.int64()}
_STATEMENTS = {"passage_id": pa.string(), "fact": pa.int64(), **_FACT}
_EDGES = {
    "source": pa.string(),
    "target": pa.string(),
    "kinds": _STRINGS,
    "weight": pa.float32(),
    "statements": pa.int64(),
    "cosine": pa.float32(),
}


def _table(
    index: Index,
    name: str,
    columns: dict[str, pa.DataType],
    rows: Iterator[tuple[Any, ...]],
    emb: Tensor | None = None,
) -> Table:
    if emb is not None and emb.shape[1] == 0:
        emb = None
    fields = [pa.field(key, kind, nullable=key in _NULLABLE) for key, kind in columns.items()]
    if emb is not None:
        fields.append(pa.field("vector", pa.list_(pa.float32(), emb.shape[1]), nullable=False))
    identity = {
        "embedder": asdict(index.embedder),
        "text": asdict(index.text),
        "graph": {"type": type(index.graph_options).__name__, **asdict(index.graph_options)},
    }
    return Table(name, pa.schema(fields, metadata={"hipporag_torch": _json(identity)}), rows, emb)


def _passages(index: Index) -> Iterator[tuple[Any, ...]]:
    for passage, extraction in zip(index.passages, index.extractions, strict=True):
        yield passage.id, passage.text, extraction.status, extraction.producer


def _sources(index: Index) -> Iterator[tuple[Any, ...]]:
    for passage in index.passages:
        for s in passage.sources:
            yield passage.id, s.source_id, s.position, s.start, s.end, _json(s.metadata)


def _extractions(index: Index) -> Iterator[tuple[Any, ...]]:
    for passage, e in zip(index.passages, index.extractions, strict=True):
        triples = [{"subject": t.subject, "predicate": t.predicate, "object": t.object} for t in e.triples]
        sentences = [{"text": sentence.text, "names": list(names)} for sentence, names in e.sentences]
        found = (list(e.entities), triples, sentences)
        yield (passage.id, e.status, e.reason, e.reply, e.producer, e.permanent, _json(e.dropped), *found)


def _phrases(index: Index) -> Iterator[tuple[Any, ...]]:
    passage_idx, phrase_idx = index.statements.memberships(len(index.phrases))
    by_phrase = torch.argsort(phrase_idx, stable=True)
    counts = torch.bincount(phrase_idx, minlength=len(index.phrases)).tolist()
    rows = passage_idx[by_phrase]
    start = 0
    for phrase, count in zip(index.phrases, counts, strict=True):
        yield phrase, [index.passages[row].id for row in rows[start : start + count].tolist()]
        start += count


def _facts(index: Index) -> Iterator[tuple[Any, ...]]:
    _, fact_idx = _stated(index)
    counts = torch.bincount(fact_idx, minlength=len(index.facts)).tolist()
    ends, start = index.fact_ends.values.tolist(), 0
    for fact, count, length in zip(index.facts, counts, index.fact_ends.lengths.tolist(), strict=True):
        phrases = [index.phrases[row] for row in ends[start : start + length]]
        yield (*_fact_columns(fact), phrases, count)
        start += length


def _statements(index: Index) -> Iterator[tuple[Any, ...]]:
    for passage_row, fact_row in zip(*(rows.tolist() for rows in _stated(index)), strict=True):
        yield index.passages[passage_row].id, fact_row, *_fact_columns(index.facts[fact_row])


def _fact_columns(fact: Fact) -> tuple[str | None, ...]:
    """Subject, predicate, object and sentence: those that the fact has."""
    return (*fact.parts, None) if isinstance(fact, Triple) else (None, None, None, fact.text)


def _stated(index: Index) -> tuple[Tensor, Tensor]:
    """The passage and the fact of every statement; a sentence once, however many names it has."""
    passage_idx, fact_idx = index.statements.passage_idx, index.statements.fact_idx
    is_triple = torch.tensor([isinstance(fact, Triple) for fact in index.facts], dtype=torch.bool)
    counts = is_triple[fact_idx]
    # Statements are sorted by passage and fact.
    counts[:1] = True
    counts[1:] |= (passage_idx.diff() != 0) | (fact_idx.diff() != 0)
    return passage_idx[counts], fact_idx[counts]


def _edges(index: Index) -> Iterator[tuple[Any, ...]]:
    names = node_names(index)
    for e in edges_of(index):
        ends = (names[e.source_idx], names[e.target_idx])
        yield (*ends, list(e.kinds), e.weight, e.statements, e.cosine)


def _vectors(emb: Tensor) -> pa.Array:
    numbers = pa.array(emb.float().cpu().contiguous().numpy().reshape(-1))
    return pa.FixedSizeListArray.from_arrays(numbers, emb.shape[1])


def _json(value: Any) -> str:
    return json.dumps(dict(value), ensure_ascii=False, sort_keys=True)
