from dataclasses import replace

import numpy as np
import pytest

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation import (
    Evaluation,
    GoldCoverage,
    QuestionRow,
    RunTable,
    compare_runs,
    compare_table,
)


def run(values: list[float], metric: str = "recall@5") -> Evaluation:
    rows = tuple(
        QuestionRow(f"q{i}", f"Question {i}?", "graph", ("p",), ("p",), (1.0,), (), {metric: value})
        for i, value in enumerate(values)
    )
    return Evaluation({}, rows, {"graph": len(rows)}, GoldCoverage(len(rows), 0, 1, 0, 0, 0))


def test_means_and_questions() -> None:
    result = compare_runs(run([0.0, 1.0, 0.5, 1.0]), run([1.0, 0.5, 0.5, 1.0]))
    assert (result.mean_a, result.mean_b, result.difference) == (0.625, 0.75, 0.125)
    assert [(pair.id, pair.question, pair.a, pair.b) for pair in result.won] == [
        ("q0", "Question 0?", 0.0, 1.0)
    ]
    assert [pair.id for pair in result.lost] == ["q1"]
    assert [pair.id for pair in result.equal] == ["q2", "q3"]
    assert result.questions == 4
    assert result.low <= result.difference <= result.high


def test_equal_runs_differ_by_nothing() -> None:
    result = compare_runs(run([0.0, 1.0]), run([0.0, 1.0]), resamples=100)
    assert (result.difference, result.low, result.high, result.share_positive) == (0.0, 0.0, 0.0, 0.0)


def test_cancelling_differences_are_not_positive() -> None:
    # 0.1 + 0.2 - 0.3 leaves a last bit; with one question of each, every third resample is near 0.
    result = compare_runs(run([0.0, 0.0, 0.3]), run([0.1, 0.2, 0.0]), resamples=2000)
    values = np.array([1, 2, -3])
    draws = values[np.random.default_rng(0).integers(0, 3, (2000, 3))].sum(axis=1)
    assert result.share_positive == (draws > 0).mean()


def test_the_order_of_rows_does_not_matter() -> None:
    a, b = run([0.0, 1.0, 0.5]), run([1.0, 1.0, 0.0])
    assert compare_runs(a, replace(b, rows=b.rows[::-1])) == compare_runs(a, b)


def test_another_seed_gives_another_interval() -> None:
    rng = np.random.default_rng(5)
    a, b = run(list(rng.random(37))), run(list(rng.random(37)))
    assert compare_runs(a, b, resamples=999) == compare_runs(a, b, resamples=999)
    assert compare_runs(a, b, resamples=999, seed=1) != compare_runs(a, b, resamples=999)


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_scipy_gives_the_same_interval(confidence: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 5, 80) / 4, rng.integers(0, 5, 80) / 4
    ours = compare_runs(run(list(a)), run(list(b)), seed=9, confidence=confidence)
    theirs = stats.bootstrap(
        (a, b),
        lambda a, b, axis: (b - a).mean(axis=axis),
        paired=True,
        n_resamples=10_000,
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(9),
    )
    assert ours.low == pytest.approx(theirs.confidence_interval.low)
    assert ours.high == pytest.approx(theirs.confidence_interval.high)
    assert ours.share_positive == (theirs.bootstrap_distribution > 1e-12).mean()


def test_a_table_of_metrics() -> None:
    a, b = run([0.0, 1.0]), run([1.0, 1.0])
    both = tuple(
        replace(one, rows=tuple(replace(row, metrics={**row.metrics, "f1": 0.5}) for row in one.rows))
        for one in (a, b)
    )
    assert [row.metric for row in compare_table(*both)] == ["recall@5", "f1"]
    assert compare_table(*both, metrics=["f1"], seed=4) == (compare_runs(*both, metric="f1", seed=4),)


def test_questions_without_the_metric_are_left_out() -> None:
    a, b = run([0.0, 1.0]), run([1.0, 1.0])
    a, b = (replace(one, rows=(replace(one.rows[0], metrics={}), one.rows[1])) for one in (a, b))
    assert compare_runs(a, b).questions == 1


def test_runs_that_cannot_be_compared() -> None:
    a = run([0.0, 1.0, 0.0])
    with pytest.raises(
        InputError, match=r"not over the same questions: 1 only in A \['q2'\], 0 only in B \[\]; compare"
    ):
        compare_runs(a, run([0.0, 1.0]))
    other = replace(a, rows=(replace(a.rows[0], question="Else?"), *a.rows[1:]))
    with pytest.raises(InputError, match=r"question 'q0' is 'Question 0\?' in A and 'Else\?' in B"):
        compare_runs(a, other)
    with pytest.raises(InputError, match="run A holds question 'q0' more than once"):
        compare_runs(replace(a, rows=(a.rows[0], a.rows[0])), a)
    with pytest.raises(
        InputError, match=r"no question has the metric 'recall@3'; known metrics are recall@5$"
    ):
        compare_runs(a, a, metric="recall@3")
    with pytest.raises(
        InputError, match=r"'recall@5' of question 'q0' is in run A but not in run B; .* none"
    ):
        compare_runs(a, run([0.0, 1.0, 0.0], metric="mrr"))


def test_options_out_of_range() -> None:
    with pytest.raises(InputError, match="resamples must be at least 1, got 0"):
        compare_runs(run([1.0]), run([1.0]), resamples=0)
    with pytest.raises(InputError, match="seed must be a whole number of at least 0, got -1"):
        compare_runs(run([1.0]), run([1.0]), seed=-1)
    with pytest.raises(InputError, match=r"confidence must be between 0 and 1, such as 0\.95, got 95"):
        compare_runs(run([1.0]), run([1.0]), confidence=95)


def three() -> dict[str, Evaluation]:
    return {"one": run([0.0, 1.0, 0.0]), "two": run([1.0, 1.0, 0.0]), "three": run([1.0, 0.0, 0.0])}


def test_a_table_compares_any_two_of_its_runs() -> None:
    runs = three()
    table = RunTable(runs, resamples=500, seed=3)
    for a, b in (("one", "two"), ("one", "three"), ("three", "two")):
        assert table.compare(a, b, "recall@5") == compare_runs(runs[a], runs[b], resamples=500, seed=3)
    assert (table.names, table.metrics_of("two")) == (("one", "two", "three"), ("recall@5",))


def test_a_table_knows_the_interval_of_each_mean() -> None:
    table = RunTable(three(), resamples=2000, confidence=0.9)
    mean = table.mean("one", "recall@5")
    assert mean is not None
    draws = np.array([0, 1, 0])[np.random.default_rng(0).integers(0, 3, (2000, 3))].sum(axis=1)
    assert (mean.mean, mean.questions) == (1 / 3, 3)
    assert [mean.low * 3, mean.high * 3] == list(np.quantile(draws, [0.05, 0.95]))
    assert table.mean("one", "mrr") is None


def test_rows_of_all_runs_are_in_the_order_of_the_first() -> None:
    runs = three()
    turned = replace(runs["two"], rows=runs["two"].rows[::-1])
    table = RunTable(runs | {"two": turned}, resamples=10)
    assert table.rows("two") == runs["two"].rows


def test_the_run_that_does_not_fit_is_named() -> None:
    with pytest.raises(InputError, match=r"1 only in one \['q2'\], 0 only in four \[\]"):
        RunTable(three() | {"four": run([0.0, 1.0])})
    with pytest.raises(InputError, match="is in run one but not in run four"):
        RunTable(three() | {"four": run([0.0, 1.0, 0.0], "mrr")}).compare("one", "four", "recall@5")
    with pytest.raises(InputError, match="needs one run or more"):
        RunTable({})
