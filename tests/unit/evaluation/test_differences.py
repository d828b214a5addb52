from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.evaluation import Evaluation, GoldCoverage, QuestionRow, RunTable
from hipporag_torch.evaluation.differences import Differences, Group, QuestionDifference, find_differences


def row(
    number: int,
    value: float | None,
    *,
    route: str = "graph",
    gold: tuple[str, ...] = ("g",),
    ranked: tuple[str, ...] = ("g", "x"),
    seeds: tuple[str, ...] = (),
    steps: dict[str, int | None] | None = None,
) -> QuestionRow:
    return QuestionRow(
        id=f"q{number}",
        question=f"Question {number}?",
        route=route,
        gold_ids=gold,
        ranked_ids=ranked,
        scores=tuple(1.0 for _ in ranked),
        answers=(),
        metrics={} if value is None else {"recall@5": value},
        seeds=tuple((phrase, 0.5) for phrase in seeds),
        gold_steps=steps or {},
    )


def run(*rows: QuestionRow) -> Evaluation:
    return Evaluation({}, rows, {"graph": len(rows)}, GoldCoverage(len(rows), 0, 1, 0, 0, 0))


def differences(a: Evaluation, b: Evaluation) -> Differences:
    return find_differences(RunTable({"A": a, "B": b}, resamples=1), "A", "B", "recall@5")


def test_everything_that_differs_about_a_question() -> None:
    gold = ("g", "h")
    a = row(0, 0.5, gold=gold, ranked=("g", "x"), seeds=("oslo", "bergen", "x"), steps={"g": 1, "h": None})
    b = row(
        0, 1.0, route="dense", gold=gold, ranked=("x", "h", "g"), seeds=("y", "oslo"), steps={"g": 1, "h": 3}
    )
    found = differences(run(a), run(b))
    assert found.won == (
        QuestionDifference(
            id="q0",
            question="Question 0?",
            a=0.5,
            b=1.0,
            route_a="graph",
            route_b="dense",
            ranks_a=(1, None),
            ranks_b=(3, 2),
            farthest_a="far",
            farthest_b="3",
            seeds_shared=0.25,
            only_a=("bergen", "x"),
            only_b=("y",),
        ),
    )
    assert found.lost == ()
    assert {name: [group.name for group in groups] for name, groups in found.groups.items()} == {
        "route": ["graph → dense"],
        "gold passages": ["2"],
        "farthest gold in A": ["far"],
        "farthest gold in B": ["3"],
        "seeds in common": ["under half"],
    }


def test_groups_count_and_average_all_their_questions() -> None:
    two = ("g", "h")
    a = run(row(0, 0.0), row(1, 1.0), row(2, 0.5, gold=two), row(3, 0.5, gold=two), row(4, None))
    b = run(
        row(0, 1.0, route="dense"),
        row(1, 0.5),
        row(2, 1.0, gold=two),
        row(3, 0.5, gold=two),
        row(4, None, route="bm25"),
    )
    groups = differences(a, b).groups
    assert groups["route"] == (Group("graph", 3, 1, 1, 0.0), Group("graph → dense", 1, 1, 0, 1.0))
    assert groups["gold passages"] == (Group("1", 2, 1, 1, 0.25), Group("2", 2, 1, 0, 0.25))
    assert groups["seeds in common"] == (Group("no seeds known", 4, 2, 1, 0.25),)


def test_groups_go_from_near_to_far_and_from_none_to_all() -> None:
    steps: list[dict[str, int | None]] = [{}, {"g": None}, {"g": 3}, {"g": 1, "h": 2}, {"g": 1}]
    a = run(*(row(i, 1.0, seeds=("s", "t", "u"), steps=far) for i, far in enumerate(steps)))
    others = [("s", "t", "u"), ("s", "t"), ("s",), ("x",), ()]
    b = run(*(row(i, 1.0, seeds=seeds) for i, seeds in enumerate(others)))
    groups = differences(a, b).groups
    assert [g.name for g in groups["farthest gold in A"]] == ["1", "2", "3", "far", "no seeds known"]
    assert [g.name for g in groups["seeds in common"]] == [
        "none",
        "under half",
        "half or more",
        "all",
        "no seeds known",
    ]
    assert all(group.questions == 1 for group in groups["seeds in common"])


def test_the_largest_differences_come_first() -> None:
    a = run(row(0, 0.5), row(1, 0.0), row(2, 1.0), row(3, 1.0), row(4, 0.5))
    b = run(row(0, 1.0), row(1, 1.0), row(2, 0.5), row(3, 0.0), row(4, 1.0))
    found = differences(a, b)
    assert [question.id for question in found.won] == ["q1", "q0", "q4"]
    assert [question.id for question in found.lost] == ["q3", "q2"]


VALUES = st.sampled_from([0.0, 0.5, 1.0])
WAYS = st.tuples(VALUES, st.sampled_from(["graph", "dense"]), st.sampled_from([(), ("s",), ("s", "t")]))


@given(st.lists(st.tuples(WAYS, WAYS), min_size=1, max_size=12))
def test_every_question_is_in_one_group_of_each_division(pairs: list[tuple]) -> None:
    a, b = (
        run(*(row(i, v, route=route, seeds=seeds) for i, (v, route, seeds) in enumerate(ways)))
        for ways in zip(*pairs, strict=True)
    )
    found = differences(a, b)
    for groups in found.groups.values():
        assert sum(group.questions for group in groups) == len(pairs)
        assert sum(group.won for group in groups) == len(found.won)
        assert sum(group.lost for group in groups) == len(found.lost)
