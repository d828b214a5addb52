"""Where one run beats another, and what differs there: routes, hops, distances, seeds, ranks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from hipporag_torch.evaluation.compare import RunTable
from hipporag_torch.evaluation.rows import QuestionRow

FAR = "far"
NOT_TRACED = "no seeds known"
_SHARES = ("none", "under half", "half or more", "all")


@dataclass(frozen=True)
class QuestionDifference:
    """How run B's way to a question differs from run A's.

    a, b: the metric's values. ranks_a, ranks_b: of each gold passage, in the order of the run's gold ids,
        from 1; None for what the list does not hold.
    farthest_a, farthest_b: edges from the seeds to the gold passage farthest from them: "1" … "4", `FAR`,
        or `NOT_TRACED`.
    seeds_shared: phrases that seed both runs, as a share of those that seed either; None unless both have
        seeds. only_a, only_b: those that seed one run alone, strongest first.
    """

    id: str
    question: str
    a: float
    b: float
    route_a: str
    route_b: str
    ranks_a: tuple[int | None, ...]
    ranks_b: tuple[int | None, ...]
    farthest_a: str
    farthest_b: str
    seeds_shared: float | None
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Questions that have something in common; `difference` is the mean of B − A over all `questions`."""

    name: str
    questions: int
    won: int
    lost: int
    difference: float


@dataclass(frozen=True)
class Differences:
    """Run B against run A, question by question and in groups.

    won, lost: the questions on which B is better or worse, largest differences first, else in A's order.
    groups: what divides the questions → its groups; each question with the metric is in one of each.
    """

    won: tuple[QuestionDifference, ...]
    lost: tuple[QuestionDifference, ...]
    groups: Mapping[str, tuple[Group, ...]]


def find_differences(table: RunTable, a: str, b: str, metric: str) -> Differences:
    """Compare runs `a` and `b` of `table` by `metric`. Raises `InputError` as `RunTable.compare` does."""
    compared = table.compare(a, b, metric)
    values = {pair.id: pair for pair in (*compared.won, *compared.lost, *compared.equal)}
    questions = [
        _difference(row_a, row_b, values[row_a.id].a, values[row_a.id].b)
        for row_a, row_b in zip(table.rows(a), table.rows(b), strict=True)
        if row_a.id in values
    ]
    by_size = sorted(questions, key=lambda question: -abs(question.b - question.a))
    return Differences(
        won=tuple(question for question in by_size if question.b > question.a),
        lost=tuple(question for question in by_size if question.b < question.a),
        groups={
            "route": _groups(questions, _route, by_count=True),
            "gold passages": _groups(questions, lambda question: str(len(question.ranks_a))),
            "farthest gold in A": _groups(questions, lambda question: question.farthest_a),
            "farthest gold in B": _groups(questions, lambda question: question.farthest_b),
            "seeds in common": _groups(questions, _seeds_in_common),
        },
    )


def _difference(row_a: QuestionRow, row_b: QuestionRow, a: float, b: float) -> QuestionDifference:
    seeds_a, seeds_b = (tuple(phrase for phrase, _ in row.seeds) for row in (row_a, row_b))
    both, either = set(seeds_a) & set(seeds_b), set(seeds_a) | set(seeds_b)
    return QuestionDifference(
        id=row_a.id,
        question=row_a.question,
        a=a,
        b=b,
        route_a=row_a.route,
        route_b=row_b.route,
        ranks_a=_ranks(row_a),
        ranks_b=_ranks(row_b),
        farthest_a=_farthest(row_a),
        farthest_b=_farthest(row_b),
        seeds_shared=len(both) / len(either) if seeds_a and seeds_b else None,
        only_a=tuple(phrase for phrase in seeds_a if phrase not in both),
        only_b=tuple(phrase for phrase in seeds_b if phrase not in both),
    )


def _ranks(row: QuestionRow) -> tuple[int | None, ...]:
    rank = {passage_id: number for number, passage_id in reversed([*enumerate(row.ranked_ids, start=1)])}
    return tuple(rank.get(gold_id) for gold_id in row.gold_ids)


def _farthest(row: QuestionRow) -> str:
    steps = list(row.gold_steps.values())
    if not steps:
        return NOT_TRACED
    known = [step for step in steps if step is not None]
    return str(max(known)) if len(known) == len(steps) else FAR


def _route(question: QuestionDifference) -> str:
    if question.route_a == question.route_b:
        return question.route_a
    return f"{question.route_a} → {question.route_b}"


def _seeds_in_common(question: QuestionDifference) -> str:
    share = question.seeds_shared
    if share is None:
        return NOT_TRACED
    if share in (0, 1):
        return _SHARES[0] if share == 0 else _SHARES[-1]
    return _SHARES[1] if share < 0.5 else _SHARES[2]


def _groups(
    questions: Sequence[QuestionDifference],
    name_of: Callable[[QuestionDifference], str],
    *,
    by_count: bool = False,
) -> tuple[Group, ...]:
    """Largest first if `by_count`, else from near to far and from little to much."""
    members: dict[str, list[QuestionDifference]] = {}
    for question in questions:
        members.setdefault(name_of(question), []).append(question)
    groups = [
        Group(
            name=name,
            questions=len(group),
            won=sum(question.b > question.a for question in group),
            lost=sum(question.b < question.a for question in group),
            difference=fmean(question.b - question.a for question in group),
        )
        for name, group in members.items()
    ]
    if by_count:
        return tuple(sorted(groups, key=lambda group: (-group.questions, group.name)))
    order = (*_SHARES, FAR, NOT_TRACED)
    return tuple(
        sorted(groups, key=lambda g: (order.index(g.name), 0) if g.name in order else (-1, int(g.name)))
    )
