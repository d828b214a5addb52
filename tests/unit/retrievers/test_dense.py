from collections.abc import Callable

import pytest

from hipporag_torch.index import Index
from hipporag_torch.retrievers.dense import DenseRetriever


def test_order_and_scores_are_the_cosines(index_of: Callable[..., Index], table_embedder: type) -> None:
    table = {"p1": [1.0, 0.0], "p2": [0.6, 0.8], "p3": [-1.0, 0.0], "q": [5.0, 0.0]}
    embedder = table_embedder(table)
    retriever = DenseRetriever(index=index_of({"p1": [], "p2": [], "p3": []}, embedder), embedder=embedder)
    (ranking,) = retriever.retrieve(["q"], top_k=3)
    assert [passage.text for passage in ranking.passages] == ["p1", "p2", "p3"]
    assert ranking.scores == pytest.approx((1.0, 0.6, -1.0), abs=1e-6)
    assert (ranking.route, ranking.trace) == ("dense:requested", None)


def test_questions_are_embedded_for_passages(index_of: Callable[..., Index], table_embedder: type) -> None:
    embedder = table_embedder({}, otherwise=[1.0, 0.0], instructions={"question_to_fact": "facts: "})
    retriever = DenseRetriever(index=index_of({"p": []}, embedder), embedder=embedder)
    embedder.calls.clear()
    retriever.retrieve(["a?", "b?"], top_k=1)
    assert embedder.calls == [("question_to_passage", ["a?", "b?"])]
