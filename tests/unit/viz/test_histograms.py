from pathlib import Path

import pytest
from matplotlib.image import imread

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import InputError
from hipporag_torch.graph_shape import GraphHistograms, Histogram, graph_histograms
from hipporag_torch.indexer import Indexer
from hipporag_torch.types import Document
from hipporag_torch.viz.histograms import draw_graph

from ..retrievers.conftest import GivenExtractor

FACTS = {"Ada Vale founded Northwind Press.": [("Ada Vale", "founded", "Northwind Press")]}
NONE = Histogram((), ())
# As much as a large corpus may have.
LARGE = GraphHistograms(
    Histogram(tuple(2.0**n for n in range(24)), tuple(10**7 // 2**n for n in range(23))),
    Histogram((1.0, 2.0), (10**7,)),
    12_345_678,
    9,
    {
        "fact": Histogram((0.001, 0.1, 1e6), (10**8, 1)),
        "fact and synonym": Histogram((1.0, 2.0, 3.0), (1, 0)),
        "synonym": Histogram((0.8, 0.9, 1.0), (3, 4)),
        "membership": Histogram((1.0, 1.0), (10**9,)),
        "mention": Histogram((1e-9, 1e-9), (1,)),
    },
)


def test_an_index_and_its_histograms_give_the_same_picture(tmp_path: Path) -> None:
    indexer = Indexer(embedder=HashingEmbedder(dim=64), extractor=GivenExtractor(FACTS))
    index = indexer.add(indexer.empty(), [Document(text) for text in FACTS])[0]
    draw_graph(index, tmp_path / "a.png", title="東京 $x$")
    draw_graph(graph_histograms(index), tmp_path / "b.png", title="東京 $x$")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert imread(tmp_path / "a.png").shape[:2] == (780, 1200)


def test_large_graphs_and_weights_of_any_size(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Warnings, as of limits that make no axis, are errors here."""
    draw_graph(LARGE, tmp_path / "it.png", title="a title " * 50)
    assert imread(tmp_path / "it.png").shape[:2] == (780, 1200)
    assert caplog.records == []


def test_passages_alone(tmp_path: Path) -> None:
    shape = GraphHistograms(NONE, NONE, 0, 3, {"mention": Histogram((0.25, 0.25), (1,))})
    draw_graph(shape, tmp_path / "it.png")
    assert imread(tmp_path / "it.png").shape[:2] == (780, 1200)


def test_a_graph_without_edges(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the graph has no edges"):
        draw_graph(GraphHistograms(NONE, NONE, 0, 3, {}), tmp_path / "it.png")
    assert list(tmp_path.iterdir()) == []
