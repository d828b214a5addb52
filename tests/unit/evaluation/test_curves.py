import pytest

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation import Evaluation, GoldCoverage, QuestionRow, RunTable
from hipporag_torch.evaluation.curves import Curve, curve_of, recall_curve


def run(*metrics: dict[str, float]) -> Evaluation:
    rows = tuple(
        QuestionRow(f"q{i}", f"Question {i}?", "graph", ("p",), ("p",), (1.0,), (), values)
        for i, values in enumerate(metrics)
    )
    return Evaluation({}, rows, {"graph": len(rows)}, GoldCoverage(len(rows), 0, 1, 0, 0, 0))


def test_recall_at_every_k_in_their_order() -> None:
    """Passages alone, and no other metric."""
    row = {"recall@10": 1.0, "recall@2": 0.5, "all_recall@2": 0.0, "title/recall@1": 0.0, "mrr": 1.0}
    curve = recall_curve(run(row, row), "dense", resamples=50)
    assert curve == Curve("dense", (2, 10), (0.5, 1.0), (0.5, 1.0), (0.5, 1.0))


def test_bands_are_those_of_the_table() -> None:
    evaluation = run(*({"recall@1": value, "f1": 0.5} for value in (0.0, 0.5, 1.0, 1.0)))
    table = RunTable({"dense": evaluation}, resamples=300, seed=4, confidence=0.8)
    curve = recall_curve(evaluation, "dense", resamples=300, seed=4, confidence=0.8)
    mean = table.mean("dense", "recall@1")
    assert mean is not None
    assert curve_of(table, "dense") == curve
    assert (curve.low, curve.means, curve.high) == ((mean.low,), (mean.mean,), (mean.high,))
    assert curve.low < curve.means < curve.high


def test_without_gold_there_is_nothing_to_draw() -> None:
    with pytest.raises(InputError, match="dense has no recall@k to draw"):
        recall_curve(run({"em": 1.0}), "dense")
    assert curve_of(RunTable({"dense": run({"em": 1.0})}, resamples=1), "dense") is None
