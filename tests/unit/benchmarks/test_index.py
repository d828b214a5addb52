"""The benchmark of a durable index, on corpora small enough for a test."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from hipporag_torch.benchmarks.corpora import synthetic_corpus
from hipporag_torch.benchmarks.index import IndexBenchmark, same_index
from hipporag_torch.benchmarks.timing import Row
from hipporag_torch.errors import ConfigError
from hipporag_torch.index import Index

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def index() -> Index:
    corpus = synthetic_corpus(20)
    return corpus.indexer.add(corpus.indexer.empty(), corpus.documents)[0]


@pytest.mark.slow
def test_small_corpora_give_every_row_and_leave_nothing_behind(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    benchmark = IndexBenchmark(device=CPU, corpus=110, growth=[20, 200], rounds=1, directory=tmp_path)
    rows = benchmark.run(lambda _, done, total: calls.append((done, total)))
    assert all(set(row) == set(benchmark.columns) for row in rows)
    real = {row["what"]: row for row in rows if not row["what"].startswith("synthetic")}
    assert set(real) == {
        *("build, one add", "build, 2 adds", "disk, float32", "disk, float16", "open to answer"),
        *("open in new process", "add 10", "remove 10", "check", "compact", "open after compact"),
    }
    assert real["build, 2 adds"]["equal"] is True
    assert not any(row["target"] for row in real.values()), "targets are stated for the real corpus"
    assert 0.5 < real["disk, float16"]["megabytes"] / real["disk, float32"]["megabytes"] < 0.7
    assert all(row["seconds"] > 0 for row in rows if row["megabytes"] is None)
    assert growth_of(rows) == {
        "synthetic: build": (20, 200, ""),
        "synthetic: add 10": (20, 200, "≤ 10×"),
        "synthetic: query": (20, 200, "≤ 12×"),
        "synthetic: query of 32": (20, 200, "≤ 10×"),
        "synthetic: remove 10": (20, 200, ""),
        "synthetic: open": (20, 200, ""),
    }
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert not list(tmp_path.iterdir())


def growth_of(rows: list[Row]) -> dict[str, tuple[int, int, str]]:
    """Both sizes of each growth measurement, and the target of the second."""
    measured = [row for row in rows if row["what"].startswith("synthetic")]
    found = {}
    for first, second in zip(measured[::2], measured[1::2], strict=True):
        assert second["what"] == first["what"]
        assert (first["ratio"], first["target"]) == (None, "")
        assert second["ratio"] == second["seconds"] / first["seconds"]
        met = second["ratio"] <= float(second["target"][2:-1]) if second["target"] else None
        assert second["met"] == met
        found[first["what"]] = (first["passages"], second["passages"], second["target"])
    return found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": torch.device("meta")}, r"an index is kept on the CPU; set runtime.device=cpu, got meta"),
        ({"rounds": 0}, r"benchmark.rounds must be at least 1, got 0"),
        ({"corpus": "hotpotqa"}, r"must be musique or a number of passages, got 'hotpotqa'"),
        ({"corpus": 20}, r"benchmark.corpus must be at least 31 passages.*3 rounds.*got 20"),
        ({"growth": [20, 400]}, r"benchmark.growth must be at least 31 passages.*got 20"),
        ({"growth": [2000]}, r"must be empty, or at least two ascending numbers, got \[2000\]"),
        ({"growth": [400, 40]}, r"ascending numbers, got \[400, 40\]"),
        ({"growth": [400, 400]}, r"ascending numbers, got \[400, 400\]"),
        ({"directory": "/no/such/place"}, r"benchmark.directory must be a directory or null, got /no/such"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        IndexBenchmark(**({"device": CPU, "rounds": 3} | options))


@pytest.mark.parametrize(
    "change",
    [
        lambda index: replace(index, phrases=index.phrases[::-1]),
        lambda index: replace(index, failed={index.passages[0].id: False}),
        lambda index: replace(index, fact_emb=nudged(index.fact_emb)),
        lambda index: replace(index, synonyms=replace(index.synonyms, cosine=nudged(index.synonyms.cosine))),
        lambda index: replace(
            index, statements=replace(index.statements, fact_idx=index.statements.fact_idx.flip(0))
        ),
        lambda index: replace(index, graph=reweighted(index)),
    ],
    ids=["phrases", "failed", "vectors", "synonyms", "statements", "graph"],
)
def test_one_bit_makes_another_index(index: Index, change: Callable[[Index], Index]) -> None:
    assert same_index(index, replace(index))
    assert not same_index(index, change(index))


def nudged(values: torch.Tensor) -> torch.Tensor:
    """The next number up, in the last place only."""
    other = values.clone().flatten()
    other[-1] = torch.nextafter(other[-1], torch.tensor(2.0))
    return other.view_as(values)


def reweighted(index: Index) -> Any:
    graph = index.graph
    return replace(graph, adjacency=replace(graph.adjacency, weight=nudged(graph.adjacency.weight)))
