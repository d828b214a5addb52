from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.image import imread

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.evaluation.rows import QuestionRow
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.tracking.worst import draw_worst, require_drawing, worst_rows
from hipporag_torch.types import Document, Extraction, Passage, Ranking, Triple

FOUNDED, STANDS = "Ada Vale founded Northwind Press.", "Northwind Press stands in Bergen."
STATED = {
    FOUNDED: Triple("Ada Vale", "founded", "Northwind Press"),
    STANDS: Triple("Northwind Press", "stands in", "Bergen"),
}


def row(id_: str, question: str, **metrics: float) -> QuestionRow:
    return QuestionRow(id_, question, "graph", (), (), (), (), metrics)


ROWS = (
    row("a", "Where does the press of Ada Vale stand?", mrr=0.5, em=1.0),
    row("b", "Who founded Northwind Press?", mrr=0.0),
    row("c", "No gold?"),
    row("d", "What stands in Bergen?", mrr=0.5),
    row("e", "Who?", mrr=1.0),
)


class Stated:
    producer = "stated"
    calls_per_passage = 0

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [Extraction(triples=(STATED[passage.text],)) for passage in passages]


@pytest.fixture(scope="module")
def index() -> Index:
    memory = HippoRAG(
        indexer=Indexer(embedder=HashingEmbedder(), extractor=Stated()),
        make_retriever=lambda index: HippoRAGRetriever(index=index, embedder=HashingEmbedder()),
    )
    memory.add([Document(text) for text in STATED])
    return memory.index


def asks(index: Index, *, trace: bool = True) -> Callable[[str], Ranking]:
    retriever = HippoRAGRetriever(index=index, embedder=HashingEmbedder())
    return lambda question: retriever.retrieve([question], top_k=2, trace=trace)[0]


@pytest.mark.parametrize(
    ("metric", "count", "ids"),
    [("mrr", 5, "bade"), ("mrr", 2, "ba"), ("mrr", 0, ""), ("em", 5, "a")],
)
def test_the_lowest_first_and_of_equals_the_earlier(metric: str, count: int, ids: str) -> None:
    assert "".join(row.id for row in worst_rows(ROWS, metric=metric, count=count)) == ids


def test_no_questions_have_no_worst() -> None:
    assert worst_rows((), metric="mrr") == ()


def test_a_metric_that_no_question_has() -> None:
    with pytest.raises(InputError, match=r"no question has the metric 'recall@5'; there are mrr, em"):
        worst_rows(ROWS, metric="recall@5")
    with pytest.raises(InputError, match=r"count must be at least 0, got -1"):
        worst_rows(ROWS, metric="mrr", count=-1)


def test_each_is_drawn_as_picture_and_page(index: Index, tmp_path: Path) -> None:
    pictures = draw_worst(ROWS, index=index, retrieve=asks(index), directory=tmp_path, metric="mrr", count=2)
    assert [(p.caption, p.png, p.html) for p in pictures] == [
        (
            "mrr 0.00: Who founded Northwind Press?",
            tmp_path / "worst" / "01.png",
            tmp_path / "worst" / "01.html",
        ),
        (
            "mrr 0.50: Where does the press of Ada Vale stand?",
            tmp_path / "worst" / "02.png",
            tmp_path / "worst" / "02.html",
        ),
    ]
    for picture, question in zip(pictures, ("Who founded", "Where does the press"), strict=True):
        assert imread(picture.png).shape[1] == 1600
        assert picture.html is not None
        page = picture.html.read_text("utf-8")
        assert question in page
        assert "northwind press" in page


def test_a_question_that_did_not_walk_is_drawn_too(index: Index, tmp_path: Path) -> None:
    def densely(question: str) -> Ranking:
        return replace(asks(index)(question), route="dense:no_facts", trace=None)

    (picture,) = draw_worst(ROWS, index=index, retrieve=densely, directory=tmp_path, metric="mrr", count=1)
    assert picture.html is not None
    assert "dense:no_facts" in picture.html.read_text("utf-8")


def test_a_walk_that_was_not_traced_cannot_be_drawn(index: Index, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="trace=True"):
        draw_worst(ROWS, index=index, retrieve=asks(index, trace=False), directory=tmp_path, metric="mrr")


def test_missing_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hipporag_torch.tracking.worst.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'hipporag-torch\[viz\]', or do without them: pic"):
        require_drawing()
