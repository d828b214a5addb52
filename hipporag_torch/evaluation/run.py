"""A run: every question of a data set through a retriever, and how well its gold was found."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypedDict

from hipporag_torch.errors import BackendError, InputError
from hipporag_torch.evaluation.answers import require_answers
from hipporag_torch.evaluation.distances import gold_steps
from hipporag_torch.evaluation.gold import GoldCoverage, check_gold, document_title
from hipporag_torch.evaluation.rows import Given, QuestionRow, gold_of, row_of, seeds_of
from hipporag_torch.index import Index
from hipporag_torch.protocols import Progress, Reader, Retriever, no_progress
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Dataset, Question, Ranking

Keep = Callable[[Sequence[QuestionRow]], None]


class _RowOptions(TypedDict):
    """What the rows of a batch share."""

    text: TextOptions
    titles: Mapping[str, str]
    ks: Sequence[int]
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Evaluation:
    """A run's means, and what they are the means of.

    `metrics` holds `questions` and how many had gold (`questions_scored`, `title/questions_scored`), and
    the mean over the latter of everything that the rows hold; without a scored question no mean is there.
    `routes` counts the questions by the way they went.
    """

    metrics: dict[str, float]
    rows: tuple[QuestionRow, ...]
    routes: dict[str, int]
    gold: GoldCoverage


def evaluate(
    dataset: Dataset,
    retriever: Retriever,
    *,
    text: TextOptions,
    ks: Sequence[int] = (1, 2, 5, 10, 20),
    top_k: int | None = None,
    batch_size: int = 32,
    answers: Mapping[str, str] | None = None,
    reader: Reader | None = None,
    traced: Index | None = None,
    done: Sequence[QuestionRow] = (),
    keep: Keep | None = None,
    progress: Progress = no_progress,
) -> Evaluation:
    """Ask `retriever` every question of `dataset` and compare what it finds with the gold passages.

    text: how passage ids are made; must be what the retriever's index was built with.
    ks: the cut-offs of recall, each at least 1.
    top_k: how many passages to ask for; None asks for max(ks). MRR looks no further than this.
    batch_size: how many questions go to the retriever at once. It sees their texts, nothing else.
    answers: a reader's answer by question id, scored by exact match and token F1. reader: makes them from
    the rankings instead; only one of the two may be given.
    traced: the retriever's index; given, the rows also say which phrases seeded each walk and how far from
    them the gold lay.
    done: rows of these very questions from an earlier run with the same options; they are not asked again.
    keep: called with the rows of each batch as soon as they are there.

    A gold passage that is not in the corpus counts as not found; `check_gold` tells beforehand.
    Raises `InputError` for options out of range, `BackendError` if the retriever skips questions.
    """
    depth = retrieval_depth(ks, top_k)
    ks = sorted(set(ks))
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, got {batch_size}")
    if answers is not None and reader is not None:
        raise InputError("answers come from a file or from a reader, got both; leave one out")
    if answers is not None:
        require_answers(dataset.questions, answers)
    titles: dict[str, str] = {}
    for document in dataset.documents:
        titles.setdefault(text.passage_id(document.text), document_title(document))

    rows = _rows_of(dataset, done)
    open_ = [question for question in dataset.questions if question.id not in rows]
    for start in range(0, len(open_), batch_size):
        batch = open_[start : start + batch_size]
        began = time.perf_counter()
        rankings = _retrieve(retriever, batch, depth, trace=traced is not None)
        seconds = {"retrieve": (time.perf_counter() - began) / len(batch)}
        began = time.perf_counter()
        given = _answers(batch, rankings, answers, reader)
        if reader is not None:
            seconds["read"] = (time.perf_counter() - began) / len(batch)
        steps = _steps(traced, batch, rankings, text)
        options: _RowOptions = {"text": text, "titles": titles, "ks": ks, "seconds": seconds}
        made = [
            row_of(question, ranking, said, gold_steps=far, **options)
            for question, ranking, said, far in zip(batch, rankings, given, steps, strict=True)
        ]
        rows |= {row.id: row for row in made}
        if keep is not None:
            keep(made)
        progress("evaluate", len(rows), len(dataset.questions))
    ordered = tuple(rows[question.id] for question in dataset.questions)
    return evaluation_of(ordered, check_gold(dataset, text))


def evaluation_of(rows: Sequence[QuestionRow], gold: GoldCoverage) -> Evaluation:
    """The run that some rows are."""
    routes = Counter(row.route for row in rows)
    return Evaluation(means(rows), tuple(rows), dict(sorted(routes.items())), gold)


def retrieval_depth(ks: Sequence[int], top_k: int | None) -> int:
    """How many passages to ask for; raises `InputError` unless `ks` are cut-offs that they reach."""
    if not isinstance(ks, Sequence) or not ks or any(type(k) is not int or k < 1 for k in ks):
        raise InputError(f"ks must be a list of one or more whole numbers of at least 1, got {ks!r:.80}")
    if top_k is None:
        return max(ks)
    if type(top_k) is not int or top_k < max(ks):
        raise InputError(
            f"top_k must be a whole number of at least the largest of ks, {max(ks)}, got {top_k!r:.80}; "
            "raise it or drop the larger ks"
        )
    return top_k


def _rows_of(dataset: Dataset, done: Sequence[QuestionRow]) -> dict[str, QuestionRow]:
    """Rows by question id, of questions that the data set has."""
    texts = {question.id: question.text for question in dataset.questions}
    for row in done:
        if texts.get(row.id) != row.question:
            raise InputError(
                f"the earlier run asked {row.id!r}: {row.question!r:.80}, which is no question of "
                f"{dataset.name}; go on with the data set that it was begun with"
            )
    return {row.id: row for row in done}


def _retrieve(
    retriever: Retriever, batch: Sequence[Question], depth: int, *, trace: bool
) -> Sequence[Ranking]:
    rankings = retriever.retrieve([question.text for question in batch], top_k=depth, trace=trace)
    if len(rankings) != len(batch):
        raise BackendError(
            f"the retriever gave {len(rankings)} rankings for {len(batch)} questions; "
            "expected one for each, in order"
        )
    return rankings


def _answers(
    batch: Sequence[Question],
    rankings: Sequence[Ranking],
    answers: Mapping[str, str] | None,
    reader: Reader | None,
) -> Sequence[Given | None]:
    if answers is not None:
        return [Given(answers[question.id]) for question in batch]
    return [None] * len(batch) if reader is None else [Given.of(answer) for answer in reader.read(rankings)]


def _steps(
    traced: Index | None, batch: Sequence[Question], rankings: Sequence[Ranking], text: TextOptions
) -> Sequence[Mapping[str, int | None]]:
    if traced is None:
        return [{}] * len(batch)
    seeds = [[phrase for phrase, _ in seeds_of(ranking)] for ranking in rankings]
    return gold_steps(traced, seeds, [list(gold_of(question, text)) for question in batch])


def means(rows: Sequence[QuestionRow]) -> dict[str, float]:
    """How many questions there are and were scored, and the mean of each metric over those that have it."""
    metrics = {
        "questions": float(len(rows)),
        "questions_scored": float(sum("mrr" in row.metrics for row in rows)),
        "title/questions_scored": float(sum("title/mrr" in row.metrics for row in rows)),
    }
    for name in dict.fromkeys(name for row in rows for name in row.metrics):
        metrics[name] = fmean(row.metrics[name] for row in rows if name in row.metrics)
    return metrics
