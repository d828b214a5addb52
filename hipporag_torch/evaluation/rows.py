"""One question's outcome in a run, and how it is scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from hipporag_torch.chat import Usage
from hipporag_torch.evaluation.metrics import all_recall_at, exact_match, recall_at, reciprocal_rank, token_f1
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Answer, Passage, Question, Ranking

_MAX_SEEDS = 10
_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class QuestionRow:
    """One question's outcome: a line of predictions.jsonl.

    `metrics` are this question's own values in [0, 1], under the names of the run's means: `recall@5`,
    `all_recall@5` and `mrr` (here the reciprocal rank) for passages, the same with `title/` in front for
    titles. A level on which the question has no gold is left out. `em` and `f1` are there if it was
    answered (`answer`) and its answers are known.
    `ranked_ids` are best first, with `scores` beside them. `reason` says what went wrong on the `route`,
    `answer_flag` what is odd about the answer; `thoughts` are a model's, between its retrievals.
    `usage` is what models were asked for this question, `seconds` its share of its batch's, by stage.
    `seeds` are the strongest phrases that its walk restarted from, with their shares, at most 10.
    `gold_steps` says for each gold id how many edges lie between it and the nearest of these: 1 where the
    passage states a seed; None where that is more than were looked for. Both are empty where nothing walked,
    or the run was not traced.
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
    answer_flag: str = ""
    reason: str = ""
    thoughts: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    seconds: Mapping[str, float] = field(default_factory=dict)
    seeds: tuple[tuple[str, float], ...] = ()
    gold_steps: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Given:
    """What answered a question: a reader, with what is known of it, or a file with nothing but the text."""

    text: str
    flag: str = ""
    usage: Usage = field(default_factory=Usage)

    @classmethod
    def of(cls, answer: Answer) -> "Given":
        return cls(answer.text, answer.flag, answer.usage)


def row_of(
    question: Question,
    ranking: Ranking,
    given: Given | None,
    *,
    text: TextOptions,
    titles: Mapping[str, str],
    ks: Sequence[int],
    seconds: Mapping[str, float] = _NOTHING,
    gold_steps: Mapping[str, int | None] = MappingProxyType({}),
) -> QuestionRow:
    """Score what was found for a question, and what was answered.

    titles: passage id → title, of the corpus. The others are as the rows hold them.
    """
    gold = gold_of(question, text)
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
        | _answer_scores(given, question.answers),
        answer=given and given.text,
        answer_flag=given.flag if given else "",
        reason=ranking.reason,
        thoughts=ranking.thoughts,
        usage=ranking.usage + (given.usage if given else Usage()),
        seconds=dict(seconds),
        seeds=seeds_of(ranking),
        gold_steps=dict(gold_steps),
    )


def gold_of(question: Question, text: TextOptions) -> dict[str, str]:
    """The ids of a question's gold passages and their texts."""
    return {text.passage_id(gold_text): gold_text for gold_text in question.gold_texts}


def seeds_of(ranking: Ranking) -> tuple[tuple[str, float], ...]:
    """The strongest phrases that a traced ranking's walk restarted from, with their shares."""
    seeds = ranking.trace.seeds if ranking.trace else ()
    return tuple((seed.name, seed.weight) for seed in seeds if seed.kind == "phrase")[:_MAX_SEEDS]


def _scores(level: str, gold: Sequence[str], ranked: Sequence[str], ks: Sequence[int]) -> dict[str, float]:
    if not gold:
        return {}
    scores = {f"{level}recall@{k}": recall_at(gold, ranked, k) for k in ks}
    scores |= {f"{level}all_recall@{k}": all_recall_at(gold, ranked, k) for k in ks}
    return scores | {f"{level}mrr": reciprocal_rank(gold, ranked)}


def _answer_scores(given: Given | None, known: Sequence[str]) -> dict[str, float]:
    if given is None or not known:
        return {}
    return {"em": exact_match(given.text, known), "f1": token_f1(given.text, known)}


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
