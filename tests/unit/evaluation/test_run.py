from collections.abc import Sequence

import pytest

from hipporag_torch.errors import BackendError, InputError
from hipporag_torch.evaluation import evaluate
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Dataset, Document, Passage, Question, Ranking, Source

TEXT = TextOptions()
A1, A2, B, C = "A\nfirst", "A\nsecond", "B\nthird", "untitled"
DOCUMENTS = (
    *(Document(text, metadata={"title": text[0]}) for text in (A1, A2, B)),
    Document(C),
)


class FixedRetriever:
    """Returns the same texts for every question, and remembers how it was asked."""

    def __init__(self, *texts: str) -> None:
        self.passages = tuple(Passage(TEXT.passage_id(text), text) for text in texts)
        self.calls: list[tuple[list[str], int]] = []

    def retrieve(self, questions: Sequence[str], *, top_k: int, trace: bool = False) -> list[Ranking]:
        self.calls.append((list(questions), top_k))
        found = self.passages[:top_k]
        scores = tuple(1 / rank for rank in range(1, len(found) + 1))
        return [Ranking(question, found, scores, "dense:requested") for question in questions]


def dataset(*gold: tuple[str, ...]) -> Dataset:
    questions = (
        Question(f"q{i}", f"Question {i}?", answers=("yes",), gold_texts=texts)
        for i, texts in enumerate(gold)
    )
    return Dataset("letters", DOCUMENTS, tuple(questions))


def test_both_levels_of_one_question() -> None:
    result = evaluate(dataset((A2, B)), FixedRetriever(C, A1, A2, B), text=TEXT, ks=(2, 1, 3, 4))
    (row,) = result.rows
    assert row.metrics == {
        "recall@1": 0.0,
        "recall@2": 0.0,
        "recall@3": 0.5,
        "recall@4": 1.0,
        "all_recall@1": 0.0,
        "all_recall@2": 0.0,
        "all_recall@3": 0.0,
        "all_recall@4": 1.0,
        "mrr": 1 / 3,
        # The untitled passage is left out, and A counts once.
        "title/recall@1": 0.5,
        "title/recall@2": 1.0,
        "title/recall@3": 1.0,
        "title/recall@4": 1.0,
        "title/all_recall@1": 0.0,
        "title/all_recall@2": 1.0,
        "title/all_recall@3": 1.0,
        "title/all_recall@4": 1.0,
        "title/mrr": 1.0,
    }
    assert (row.id, row.question, row.route, row.answers) == (
        "q0",
        "Question 0?",
        "dense:requested",
        ("yes",),
    )
    assert row.gold_ids == (TEXT.passage_id(A2), TEXT.passage_id(B))
    assert row.ranked_ids == tuple(TEXT.passage_id(text) for text in (C, A1, A2, B))
    assert row.scores == (1.0, 1 / 2, 1 / 3, 1 / 4)
    assert result.routes == {"dense:requested": 1}


def test_means_are_over_the_questions_with_gold() -> None:
    result = evaluate(dataset((A1,), (B,), (), (C,)), FixedRetriever(A1), text=TEXT, ks=(1,))
    assert result.metrics == {
        "questions": 4.0,
        "questions_scored": 3.0,
        "title/questions_scored": 2.0,
        "recall@1": pytest.approx(1 / 3),
        "all_recall@1": pytest.approx(1 / 3),
        "mrr": pytest.approx(1 / 3),
        "title/recall@1": 0.5,
        "title/all_recall@1": 0.5,
        "title/mrr": 0.5,
    }
    assert result.gold.questions_without_gold == 1


@pytest.mark.parametrize("data", [dataset((), ()), Dataset("empty", (), ())])
def test_no_scored_question_gives_no_means(data: Dataset) -> None:
    result = evaluate(data, FixedRetriever(A1), text=TEXT)
    assert result.metrics == {
        "questions": len(data.questions),
        "questions_scored": 0.0,
        "title/questions_scored": 0.0,
    }


def test_gold_that_the_corpus_lacks_counts_as_not_found() -> None:
    result = evaluate(dataset((A1, "A\nabsent"), ("first",)), FixedRetriever(A1), text=TEXT, ks=(1,))
    first, text_only = (row.metrics for row in result.rows)
    assert (first["recall@1"], first["title/recall@1"]) == (0.5, 1.0)
    assert text_only == {"recall@1": 0.0, "all_recall@1": 0.0, "mrr": 0.0}
    assert (result.gold.absent, result.gold.text_only) == (2, 1)


def test_titles_of_passages_from_outside_the_corpus_come_from_their_sources() -> None:
    retriever = FixedRetriever()
    retriever.passages = (
        Passage("chunk", "part of B", (Source("x", 0), Source("y", 0, {"title": "B"}))),
        Passage("other", "no title", (Source("z", 0),)),
    )
    metrics = evaluate(dataset((B,)), retriever, text=TEXT, ks=(1,)).metrics
    assert (metrics["recall@1"], metrics["title/recall@1"]) == (0.0, 1.0)


def test_batches_progress_and_depth() -> None:
    retriever = FixedRetriever(A1)
    seen: list[tuple[str, int, int]] = []
    evaluate(
        dataset((A1,), (A1,), (A1,)),
        retriever,
        text=TEXT,
        ks=(5, 1),
        batch_size=2,
        progress=lambda stage, done, total: seen.append((stage, done, total)),
    )
    assert retriever.calls == [(["Question 0?", "Question 1?"], 5), (["Question 2?"], 5)]
    assert seen == [("evaluate", 2, 3), ("evaluate", 3, 3)]
    evaluate(dataset((A1,)), retriever, text=TEXT, ks=(1,), top_k=7)
    assert retriever.calls[-1][1] == 7


def test_options_out_of_range() -> None:
    for ks in ((), (0, 1)):
        with pytest.raises(
            InputError, match="ks must be a list of one or more whole numbers of at least 1, got"
        ):
            evaluate(dataset(), FixedRetriever(), text=TEXT, ks=ks)
    with pytest.raises(
        InputError, match="top_k must be a whole number of at least the largest of ks, 20, got 10"
    ):
        evaluate(dataset(), FixedRetriever(), text=TEXT, top_k=10)
    with pytest.raises(InputError, match="batch_size must be at least 1, got 0"):
        evaluate(dataset(), FixedRetriever(), text=TEXT, batch_size=0)


def test_a_retriever_that_skips_questions() -> None:
    class Skipping(FixedRetriever):
        def retrieve(self, questions: Sequence[str], *, top_k: int, trace: bool = False) -> list[Ranking]:
            return super().retrieve(questions[1:], top_k=top_k)

    with pytest.raises(BackendError, match="gave 1 rankings for 2 questions"):
        evaluate(dataset((A1,), (B,)), Skipping(A1), text=TEXT)
