"""A run: every question of a data set through a retriever, and how well its gold was found."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from hipporag_torch.errors import BackendError, InputError
from hipporag_torch.evaluation.answers import require_answers
from hipporag_torch.evaluation.gold import GoldCoverage, check_gold, document_title
from hipporag_torch.evaluation.metrics import all_recall_at, exact_match, recall_at, reciprocal_rank, token_f1
from hipporag_torch.protocols import Progress, Reader, Retriever, no_progress
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Dataset, Passage, Question, Ranking


@dataclass(frozen=True)
class QuestionRow:
    """One question's outcome.

    `metrics` are this question's own values in [0, 1], under the names of the run's means: `recall@5`,
    `all_recall@5` and `mrr` (here the reciprocal rank) for passages, the same with `title/` in front for
    titles. A level on which the question has no gold is left out. `em` and `f1` are there if it was
    answered (`answer`) and its answers are known.
    `ranked_ids` are best first, with `scores` beside them.
    """

    id: str
    question: str
    route: str
    gold_ids: tuple[str, ...]
    ranked_ids: tuple[str, ...]
    scores: tuple[float, ...]
    answers: tuple[str, ...]
    metrics: Mapping[str, float]
    answer: str | None = None


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
    progress: Progress = no_progress,
) -> Evaluation:
    """Ask `retriever` every question of `dataset` and compare what it finds with the gold passages.

    text: how passage ids are made; must be what the retriever's index was built with.
    ks: the cut-offs of recall, each at least 1.
    top_k: how many passages to ask for; None asks for max(ks). MRR looks no further than this.
    batch_size: how many questions go to the retriever at once. It sees their texts, nothing else.
    answers: a reader's answer by question id, scored by exact match and token F1. reader: makes them from
    the rankings instead; only one of the two may be given.

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

    rows: list[QuestionRow] = []
    total = len(dataset.questions)
    for start in range(0, total, batch_size):
        batch = dataset.questions[start : start + batch_size]
        rankings = retriever.retrieve([question.text for question in batch], top_k=depth)
        if len(rankings) != len(batch):
            raise BackendError(
                f"the retriever gave {len(rankings)} rankings for {len(batch)} questions; "
                "expected one for each, in order"
            )
        given = _answers(batch, rankings, answers, reader)
        rows += [
            _row(question, ranking, text, titles, ks, answer)
            for question, ranking, answer in zip(batch, rankings, given, strict=True)
        ]
        progress("evaluate", len(rows), total)
    routes = Counter(row.route for row in rows)
    return Evaluation(_means(rows), tuple(rows), dict(sorted(routes.items())), check_gold(dataset, text))


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


def _answers(
    batch: Sequence[Question],
    rankings: Sequence[Ranking],
    answers: Mapping[str, str] | None,
    reader: Reader | None,
) -> Sequence[str | None]:
    if answers is not None:
        return [answers[question.id] for question in batch]
    return [None] * len(batch) if reader is None else [answer.text for answer in reader.read(rankings)]


def _row(
    question: Question,
    ranking: Ranking,
    text: TextOptions,
    titles: Mapping[str, str],
    ks: Sequence[int],
    answer: str | None,
) -> QuestionRow:
    gold = {text.passage_id(gold_text): gold_text for gold_text in question.gold_texts}
    gold_titles = [_gold_title(key, gold_text, titles) for key, gold_text in gold.items()]
    ranked_titles = [_ranked_title(passage, titles) for passage in ranking.passages]
    return QuestionRow(
        id=question.id,
        question=question.text,
        route=ranking.route,
        gold_ids=tuple(gold),
        ranked_ids=ranking.passage_ids,
        scores=ranking.scores,
        answers=question.answers,
        metrics=_scores("", list(gold), ranking.passage_ids, ks)
        | _scores("title/", _named(gold_titles), _named(ranked_titles), ks)
        | _answer_scores(answer, question.answers),
        answer=answer,
    )


def _scores(level: str, gold: Sequence[str], ranked: Sequence[str], ks: Sequence[int]) -> dict[str, float]:
    if not gold:
        return {}
    scores = {f"{level}recall@{k}": recall_at(gold, ranked, k) for k in ks}
    scores |= {f"{level}all_recall@{k}": all_recall_at(gold, ranked, k) for k in ks}
    return scores | {f"{level}mrr": reciprocal_rank(gold, ranked)}


def _answer_scores(answer: str | None, known: Sequence[str]) -> dict[str, float]:
    if answer is None or not known:
        return {}
    return {"em": exact_match(answer, known), "f1": token_f1(answer, known)}


def _gold_title(passage_id: str, gold_text: str, titles: Mapping[str, str]) -> str:
    if passage_id in titles:
        return titles[passage_id]
    # Not in the corpus: the first line is the title, unless the gold is text alone.
    title, newline, _ = gold_text.partition("\n")
    return title if newline else ""


def _ranked_title(passage: Passage, titles: Mapping[str, str]) -> str:
    if passage.id in titles:
        return titles[passage.id]
    # The index holds more than this corpus: the passage's own sources know its title.
    return passage.title


def _named(titles: Sequence[str]) -> list[str]:
    """The titles without duplicates and without those of untitled passages, in order."""
    return [title for title in dict.fromkeys(titles) if title]


def _means(rows: Sequence[QuestionRow]) -> dict[str, float]:
    metrics = {
        "questions": float(len(rows)),
        "questions_scored": float(sum("mrr" in row.metrics for row in rows)),
        "title/questions_scored": float(sum("title/mrr" in row.metrics for row in rows)),
    }
    for name in dict.fromkeys(name for row in rows for name in row.metrics):
        metrics[name] = fmean(row.metrics[name] for row in rows if name in row.metrics)
    return metrics
