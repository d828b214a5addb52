import pytest

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation import Evaluation, GoldCoverage, MeanInterval, QuestionRow, RunTable
from hipporag_torch.evaluation.markdown import bare, markdown_table, mean_cell, short_metric, table_columns


def run(metric: str, *values: float) -> Evaluation:
    rows = tuple(
        QuestionRow(
            f"q{i}", f"Question {i}?", "graph", ("p",), ("p",), (1.0,), (), {"recall@5": v, metric: v}
        )
        for i, v in enumerate(values)
    )
    return Evaluation({}, rows, {"graph": len(rows)}, GoldCoverage(len(rows), 0, 1, 0, 0, 0))


def test_a_table_of_two_runs() -> None:
    table = RunTable({"dense": run("mrr", 0.5, 0.5), "a|b": run("em", 1.0, 1.0)}, resamples=10, seed=1)
    assert markdown_table(table, ["recall@5", "em"], "recall@5").split("\n") == [
        "| run | R@5 | em | Δ R@5 | won | lost |",
        "| :--- | ---: | ---: | ---: | ---: | ---: |",
        "| dense | .500 [.50, .50] | – | – | – | – |",
        r"| a\|b | 1.000 [1.00, 1.00] | 1.000 [1.00, 1.00] | +.500 [+.500, +.500] | 2 | 0 |",
        "",
        "Means over 2 questions, with the bootstrap's 95 % interval (10 resamples of the questions, seed 1). "
        "Δ, won and lost: against dense, question by question.",
        "",
    ]


def test_usual_columns_are_those_that_are_there() -> None:
    table = RunTable({"dense": run("mrr", 0.5), "graph": run("em", 1.0)}, resamples=1)
    assert table_columns(table, None) == ("recall@5", "em")
    assert table_columns(table, ["mrr"]) == ("mrr",)
    with pytest.raises(InputError, match=r"no run has the metric 'f1'; known metrics are recall@5, mrr, em"):
        table_columns(table, ["mrr", "f1"])


@pytest.mark.parametrize(
    ("value", "text"), [(0.7654, ".765"), (1.0, "1.000"), (0.9996, "1.000"), (0.0, ".000"), (-0.25, "-.250")]
)
def test_numbers_without_their_zero(value: float, text: str) -> None:
    assert bare(value, 3) == text


def test_bounds_are_rounded_away_from_the_mean() -> None:
    assert mean_cell(MeanInterval(0.9991, 0.9981, 1.0, 9)) == ".999 [.99, 1.00]"
    assert mean_cell(MeanInterval(0.2901, 0.29, 0.2911, 9)) == ".290 [.29, .30]"


def test_short_names_of_metrics() -> None:
    assert [short_metric(name) for name in ("recall@5", "title/all_recall@10", "mrr")] == [
        "R@5",
        "title/all@10",
        "mrr",
    ]
