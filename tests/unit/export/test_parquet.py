import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from hipporag_torch.embedders.none import NoEmbedder
from hipporag_torch.errors import InputError
from hipporag_torch.export import export_parquet
from hipporag_torch.graph_construction import ReferenceGraphOptions
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import EmbedderIdentity, Progress, no_progress
from hipporag_torch.types import Document, Role

from .conftest import (
    GIVEN,
    HOSTILE,
    PETRA,
    ROME,
    UNREAD,
    VARSOVIA,
    VISTULA,
    WARSAW,
    GivenExtractor,
    TableEmbedder,
)

NAMES = ["passages", "sources", "extractions", "phrases", "facts", "statements", "edges"]


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


def passage_id(index: Index, text: str) -> str:
    return index.text.passage_id(text)


def test_passages_have_their_text_state_and_vector(known: Index, tmp_path: Path) -> None:
    export_parquet(known, tmp_path)
    rows = read(tmp_path, "passages")
    assert [row["id"] for row in rows] == [passage.id for passage in known.passages]
    assert {row["text"]: (row["status"], row["producer"]) for row in rows} == {
        WARSAW: ("ok", "given:1"),
        VARSOVIA: ("ok", "given:1"),
        VISTULA: ("ok", "given:1"),
        UNREAD: ("failed", "given:1"),
    }
    assert [row["vector"] for row in rows] == known.passage_emb.tolist()


def test_sources_have_a_row_for_every_place_that_holds_a_passage(known: Index, tmp_path: Path) -> None:
    export_parquet(known, tmp_path)
    rows = {(row["passage_id"], row["source_id"]): row for row in read(tmp_path, "sources")}
    assert {key: (row["position"], row["metadata"]) for key, row in rows.items()} == {
        (passage_id(known, WARSAW), "a.md"): (0, '{"title": "Marie"}'),
        (passage_id(known, WARSAW), "b.md"): (0, "{}"),
        (passage_id(known, VARSOVIA), "a.md"): (1, '{"page": 7, "who": "Zoë"}'),
        (passage_id(known, VISTULA), "a.md"): (2, "{}"),
        (passage_id(known, UNREAD), "c.md"): (0, "{}"),
    }
    sources = [(p.id, s.source_id, s.start, s.end) for p in known.passages for s in p.sources]
    assert [(id_, source, row["start"], row["end"]) for (id_, source), row in rows.items()] == sources


def test_extractions_stand_as_the_extractor_gave_them_failures_included(known: Index, tmp_path: Path) -> None:
    export_parquet(known, tmp_path)
    rows = {row.pop("passage_id"): row for row in read(tmp_path, "extractions")}
    common = {"producer": "given:1", "permanent": False, "dropped": "{}"}
    assert rows[passage_id(known, WARSAW)] == {
        **common,
        "status": "ok",
        "reason": "",
        "reply": "",
        "entities": ["Marie", "Warsaw"],
        "triples": [
            {"subject": "Marie", "predicate": "born in", "object": "Warsaw"},
            {"subject": "Marie", "predicate": "lived in", "object": "Warsaw"},
        ],
        "sentences": [],
    }
    assert rows[passage_id(known, UNREAD)] == {
        **common,
        "status": "failed",
        "reason": "no reply",
        "reply": '{"cut',
        "entities": [],
        "triples": [],
        "sentences": [],
    }


def test_phrases_and_facts_count_who_states_them(known: Index, tmp_path: Path) -> None:
    export_parquet(known, tmp_path)
    stated_by = {row["text"]: set(row["passages"]) for row in read(tmp_path, "phrases")}
    warsaw, varsovia, vistula = (passage_id(known, text) for text in (WARSAW, VARSOVIA, VISTULA))
    assert stated_by == {
        "marie": {warsaw},
        "varsovia": {varsovia},
        "vistula": {vistula},
        "warsaw": {warsaw, varsovia},
        "warszawa": {vistula},
    }
    assert [row["vector"] for row in read(tmp_path, "phrases")] == known.phrase_emb.tolist()
    facts = read(tmp_path, "facts")
    assert [(f["subject"], f["predicate"], f["object"], f["statements"]) for f in facts] == [
        ("marie", "born in", "warsaw", 1),
        ("marie", "lived in", "warsaw", 1),
        ("varsovia", "is", "warsaw", 2),
        ("warszawa", "lies on", "vistula", 1),
    ]
    assert [row["vector"] for row in facts] == known.fact_emb.tolist()


def test_statements_point_to_their_fact(known: Index, tmp_path: Path) -> None:
    export_parquet(known, tmp_path)
    facts, statements = read(tmp_path, "facts"), read(tmp_path, "statements")
    assert sorted((row["passage_id"], row["fact"]) for row in statements) == sorted(
        [
            (passage_id(known, WARSAW), 0),
            (passage_id(known, WARSAW), 1),
            (passage_id(known, VARSOVIA), 2),
            (passage_id(known, VARSOVIA), 2),
            (passage_id(known, VISTULA), 3),
        ]
    )
    for row in statements:
        assert all(row[part] == facts[row["fact"]][part] for part in ("subject", "predicate", "object"))


def test_sentences_stand_beside_triples_with_the_phrases_that_they_name(told: Index, tmp_path: Path) -> None:
    export_parquet(told, tmp_path)
    rows = {row["passage_id"]: row for row in read(tmp_path, "extractions")}
    petra, rome = (passage_id(told, text) for text in (PETRA, ROME))
    assert rows[petra]["sentences"] == [
        {"text": "Petra left Oslo for Rome.", "names": ["Petra", "Oslo", "Rome"]},
        {"text": "It rains.", "names": []},
        {"text": "She saw Oslo again.", "names": ["Oslo"]},
    ]
    assert (rows[petra]["triples"], rows[rome]["sentences"]) == ([], [])
    facts = read(tmp_path, "facts")
    assert [tuple(row.values())[:-1] for row in facts] == [
        (None, None, None, "Petra left Oslo for Rome.", ["oslo", "petra", "rome"], 1),
        (None, None, None, "She saw Oslo again.", ["oslo"], 1),
        ("rome", "is", "far", None, ["rome", "far"], 1),
    ]
    assert [row["vector"] for row in facts] == told.fact_emb.tolist()
    statements = read(tmp_path, "statements")
    assert sorted((row["passage_id"], row["fact"]) for row in statements) == sorted(
        [(petra, 0), (petra, 1), (rome, 2)]
    )
    for row in statements:
        assert all(
            row[part] == facts[row["fact"]][part] for part in ("subject", "predicate", "object", "sentence")
        )


def test_mentions_are_edges_of_their_own_kind(told: Index, tmp_path: Path) -> None:
    export_parquet(told, tmp_path)
    petra, rome = (f"passage:{passage_id(told, text)}" for text in (PETRA, ROME))
    edges = {(row["source"], row["target"]): row for row in read(tmp_path, "edges")}
    assert {ends: (row["kinds"], row["weight"], row["statements"]) for ends, row in edges.items()} == {
        ("phrase:far", "phrase:rome"): (["fact"], 2.0, 1),
        ("phrase:far", rome): (["membership"], 1.0, 0),
        ("phrase:rome", rome): (["membership"], 1.0, 0),
        ("phrase:oslo", rome): (["mention"], 0.25, 0),
        ("phrase:oslo", petra): (["membership"], 1.0, 0),
        ("phrase:petra", petra): (["membership"], 1.0, 0),
        ("phrase:rome", petra): (["membership"], 1.0, 0),
    }
    assert len(edges) == told.graph.num_edges


def test_edges_say_what_they_are_made_of(known: Index, tmp_path: Path) -> None:
    export_parquet(known, tmp_path)
    edges = read(tmp_path, "edges")
    between_phrases = [tuple(row.values()) for row in edges if row["target"].startswith("phrase:")]
    assert between_phrases == [
        ("phrase:marie", "phrase:vistula", ["synonym"], 1.0, 0, 1.0),
        ("phrase:marie", "phrase:warsaw", ["fact"], 4.0, 2, None),
        ("phrase:varsovia", "phrase:warsaw", ["fact", "synonym"], _f32(4.6), 2, _f32(0.6)),
        ("phrase:vistula", "phrase:warszawa", ["fact"], 2.0, 1, None),
        ("phrase:warsaw", "phrase:warszawa", ["synonym"], _f32(0.6), 0, _f32(0.6)),
    ]
    members = [tuple(row.values()) for row in edges if row["target"].startswith("passage:")]
    assert {row[2:] == (["membership"], 1.0, 0, None) for row in members} == {True}
    assert {row[:2] for row in members} == {
        (f"phrase:{phrase}", f"passage:{passage_id(known, text)}")
        for text, extraction in GIVEN.items()
        for phrase in map(str.lower, extraction.entities)
    }
    assert len(edges) == known.graph.num_edges


def test_reference_weights_name_their_kinds_too(tmp_path: Path) -> None:
    """There a synonym takes the place of the facts, so that its weight can be below theirs."""
    graph = ReferenceGraphOptions(synonym_threshold=0.5)
    indexer = Indexer(embedder=TableEmbedder(), extractor=GivenExtractor(GIVEN), graph=graph)
    index, _ = indexer.add(indexer.empty(), [Document(text) for text in GIVEN])
    export_parquet(index, tmp_path)
    edges = {(row["source"], row["target"]): row for row in read(tmp_path, "edges")}
    both = edges["phrase:varsovia", "phrase:warsaw"]
    assert (both["kinds"], both["weight"]) == (["fact", "synonym"], _f32(1.2))
    assert edges["phrase:marie", "phrase:warsaw"]["kinds"] == ["fact"]
    assert edges["phrase:marie", "phrase:warsaw"]["weight"] == 4.0
    assert edges["phrase:warsaw", "phrase:warszawa"]["kinds"] == ["synonym"]


def test_columns_are_what_vector_databases_load(known: Index, tmp_path: Path) -> None:
    export_parquet(known, tmp_path)
    for name in ("passages", "phrases", "facts"):
        field = pq.read_schema(tmp_path / f"{name}.parquet").field("vector")
        assert field.type == pa.list_(pa.float32(), 3)
        assert not field.nullable
    codecs = {
        pq.ParquetFile(tmp_path / f"{name}.parquet").metadata.row_group(0).column(0).compression
        for name in NAMES
    }
    assert codecs == {"ZSTD"}


def test_metadata_holds_the_identity_of_the_index(known: Index, tmp_path: Path) -> None:
    export_parquet(known, tmp_path)
    for name in NAMES:
        metadata = pq.read_schema(tmp_path / f"{name}.parquet").metadata
        assert json.loads(metadata[b"hipporag_torch"]) == {
            "embedder": {**asdict(known.embedder), "instructions": []},
            "text": asdict(known.text),
            "graph": {"type": "GraphOptions", **asdict(known.graph_options)},
        }


def test_hostile_texts_come_back_letter_for_letter(hostile: Index, tmp_path: Path) -> None:
    export_parquet(hostile, tmp_path)
    assert [row["text"] for row in read(tmp_path, "passages")] == [HOSTILE]
    (source,) = read(tmp_path, "sources")
    assert (source["source_id"], json.loads(source["metadata"])) == (HOSTILE, {HOSTILE: [HOSTILE, None]})
    (extraction,) = read(tmp_path, "extractions")
    given = hostile.extractions[0]
    assert [tuple(t.values()) for t in extraction["triples"]] == [
        (t.subject, t.predicate, t.object) for t in given.triples
    ]
    assert [row["text"] for row in read(tmp_path, "phrases")] == list(hostile.phrases)


def test_empty_index_gives_tables_without_rows(empty: Index, tmp_path: Path) -> None:
    exported = export_parquet(empty, tmp_path / "new" / "folder")
    assert [path.name for path in exported.paths] == [f"{name}.parquet" for name in NAMES]
    for path in exported.paths:
        table = pq.read_table(path)
        assert (table.num_rows, table.num_columns > 2) == (0, True)


def test_index_without_vectors_has_no_vector_columns(tmp_path: Path) -> None:
    indexer = Indexer(embedder=NoEmbedder(), extractor=GivenExtractor(GIVEN))
    export_parquet(indexer.add(indexer.empty(), [Document(WARSAW)])[0], tmp_path)
    assert pq.read_schema(tmp_path / "phrases.parquet").names == ["text", "passages"]
    assert [row["text"] for row in read(tmp_path, "phrases")] == ["marie", "warsaw"]


class WideEmbedder(TableEmbedder):
    """A million numbers a vector, so that eight vectors fill a row group."""

    identity = EmbedderIdentity("wide", "1", 1_000_000, "none")

    def embed(self, texts: Sequence[str], role: Role, progress: Progress = no_progress) -> torch.Tensor:
        emb = torch.zeros(len(texts), 1_000_000)
        emb[torch.arange(len(texts)), torch.tensor([int(text) for text in texts], dtype=torch.int64)] = 1
        return emb


def test_many_rows_are_written_in_several_groups(tmp_path: Path) -> None:
    indexer = Indexer(embedder=WideEmbedder(), extractor=GivenExtractor({}))
    index, _ = indexer.add(indexer.empty(), [Document(str(number)) for number in range(10)])
    export_parquet(index, tmp_path)
    file = pq.ParquetFile(tmp_path / "passages.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [8, 2]
    rows = file.read()
    assert rows["id"].to_pylist() == [passage.id for passage in index.passages]
    hot = [vector.values.to_numpy().argmax() for vector in rows["vector"]]
    assert hot == [int(text) for text in rows["text"].to_pylist()]


def test_existing_files_stay_unless_overwrite_is_set(known: Index, empty: Index, tmp_path: Path) -> None:
    (tmp_path / "facts.parquet").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"facts\.parquet exists already.*overwrite=True"):
        export_parquet(known, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["facts.parquet"]
    export_parquet(known, tmp_path, overwrite=True)
    assert len(read(tmp_path, "facts")) == 4
    export_parquet(empty, tmp_path, overwrite=True)
    assert read(tmp_path, "facts") == []


def test_the_same_index_gives_the_same_bytes(known: Index, tmp_path: Path) -> None:
    first, second = (export_parquet(known, tmp_path / name).paths for name in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_without_pyarrow_the_extra_is_named(tmp_path: Path) -> None:
    program = """
import sys
from importlib.abc import MetaPathFinder

class Blocker(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
from hipporag_torch.embedders.none import NoEmbedder
from hipporag_torch.errors import ConfigError
from hipporag_torch.export import export_parquet, export_upstream
from hipporag_torch.extractors.none import NoExtractor
from hipporag_torch.indexer import Indexer

index = Indexer(embedder=NoEmbedder(), extractor=NoExtractor()).empty()
export_upstream(index, sys.argv[1] + "/openie.json")
try:
    export_parquet(index, sys.argv[1] + "/parquet")
except ConfigError as error:
    sys.stdout.write(str(error))
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "pip install 'hipporag-torch[parquet]'" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["openie.json"]


def _f32(value: float) -> float:
    return torch.tensor(value, dtype=torch.float32).item()
