from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation import Evaluation, GoldCoverage, QuestionRow, compare_runs
from hipporag_torch.evaluation.halves import half_means
from hipporag_torch.evaluation.study import drawn_ends, require_metric, study_rows
from hipporag_torch.evaluation.variants import Study


def run(values: Sequence[float], metric: str = "recall@5") -> Evaluation:
    rows = tuple(
        QuestionRow(f"q{i}", f"Question {i}?", "graph", ("p",), ("p",), (1.0,), (), {metric: value})
        for i, value in enumerate(values)
    )
    means = {metric: sum(values) / len(values)}
    return Evaluation(means, rows, {"graph": len(rows)}, GoldCoverage(len(rows), 0, 1, 0, 0, 0))


def drawn_study(values: Sequence[float], *, halves: bool = False) -> tuple[Study, Mapping[str, Evaluation]]:
    """A baseline and as many drawn variants as there are values, whose metric has that value."""
    study = Study(
        variants={"base": []},
        halves=halves,
        random={"count": len(values), "seed": 0},
        box={"ppr.damping": {"low": 0.4, "high": 0.8}},
    )
    runs = [run([value] * 4) for value in (0.5, *values)]
    return study, {variant.name: made for variant, made in zip(study.variants, runs, strict=True)}


def test_rows_hold_each_run_against_the_baseline() -> None:
    study = Study(variants={"a": ["x=1"], "b": ["x=2", "y=3"]}, baseline="b")
    runs = {"b": run([0.0, 1.0, 0.5]), "a": run([1.0, 0.5, 1.0])}
    first, second = study_rows(study, runs)
    compared = compare_runs(runs["b"], runs["a"])
    assert (first.name, first.overrides, first.baseline, first.metric) == ("a", ("x=1",), "b", "recall@5")
    assert (first.value, first.difference) == (compared.mean_b, compared.difference)
    assert (first.low, first.high) == (compared.low, compared.high)
    assert (first.won, first.lost) == (2, 1)
    assert first.metrics == runs["a"].metrics
    assert (first.search, first.held_out, first.searched) == (None, None, first.value)
    assert (second.name, second.value, second.difference, second.won, second.lost) == ("b", 0.5, 0.0, 0, 0)


def test_ends_are_those_of_the_drawn_rows() -> None:
    rows = study_rows(*drawn_study([0.3, 0.9, 0.1, 0.7]))
    ends = drawn_ends(rows)
    assert {end: row.name for end, row in ends.items()} == {
        "worst": "random 2",
        "median": "random 0",
        "best": "random 1",
    }
    assert drawn_ends(rows[:1]) == {}


def test_a_search_looks_at_its_half_alone() -> None:
    study, runs = drawn_study([0.3, 0.9, 0.6], halves=True)
    searched = half_means(run([1.0, 0.0, 0.0, 0.0]), "recall@5").search > 0
    # All of the one question on a half, or of the others: which half it is on decides what is best.
    values = {"random 0": [1.0, 0.0, 0.0, 0.0], "random 1": [0.0] * 4, "random 2": [0.0] * 4}
    rows = study_rows(study, {**runs, **{name: run(given) for name, given in values.items()}})
    assert (drawn_ends(rows)["best"].name == "random 0") == searched
    assert all(row.value == pytest.approx(((row.search or 0) + (row.held_out or 0)) / 2) for row in rows)


def test_a_metric_that_no_question_has() -> None:
    require_metric(run([1.0]), "recall@5")
    with pytest.raises(InputError, match=r"study.metric .* got 'recall@7'; they have recall@5"):
        require_metric(run([1.0]), "recall@7")
    with pytest.raises(InputError, match="no question has gold passages"):
        require_metric(replace(run([1.0]), rows=()), "recall@5")


def test_halves_hold_every_question_once() -> None:
    for number in range(5):
        values = [float(i == number) for i in range(5)]
        halves = half_means(run(values), "recall@5")
        assert sorted(halves) in ([0, pytest.approx(1 / 3)], [0, pytest.approx(1 / 2)])
    larger = sum(half_means(run([float(i == n) for i in range(5)]), "recall@5").search > 0 for n in range(5))
    assert larger == 3


def test_halves_do_not_feel_the_order_of_the_questions() -> None:
    one = run([0.1, 0.9, 0.4, 0.7, 0.2, 0.6])
    assert half_means(one, "recall@5") == half_means(replace(one, rows=one.rows[::-1]), "recall@5")
    assert len({half_means(one, "recall@5", seed=seed) for seed in range(10)}) > 3


def test_questions_without_the_metric_are_in_neither_half() -> None:
    scored = run([0.1, 0.9, 0.4, 0.7])
    unscored = QuestionRow("a", "Unscored?", "graph", (), (), (), (), {})
    more = replace(scored, rows=(unscored, *scored.rows))
    assert half_means(more, "recall@5") == half_means(scored, "recall@5")
    with pytest.raises(InputError, match="halves need two questions with the metric 'recall@5', got 1"):
        half_means(run([1.0]), "recall@5")
