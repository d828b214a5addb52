"""What a run measured beside what was published for it."""

from typing import Any

import pytest

from hipporag_torch.errors import ConfigError
from hipporag_torch.evaluation.expected import ExpectedRow, check_expected, compare_expected

ENTRY = {"low": 0.727, "high": 0.767, "source": "a paper, table 3", "sure": "B"}


def row(got: float | None, within: bool | None, metric: str = "recall@5") -> ExpectedRow:
    return ExpectedRow(metric, got, 0.727, 0.767, within, "a paper, table 3", "B")


@pytest.mark.parametrize(
    ("got", "within"),
    [(0.747, True), (0.727, True), (0.767, True), (0.7269, False), (0.7671, False), (0, False), (1, False)],
)
def test_both_ends_of_the_range_are_within(got: float, within: bool) -> None:
    assert compare_expected({"recall@5": got, "mrr": 0.5}, {"recall@5": ENTRY}) == (row(got, within),)


def test_rows_stand_in_the_order_in_which_they_are_expected() -> None:
    metrics = {"f1": 0.5, "em": 0.75, "recall@5": 0.75}
    rows = compare_expected(metrics, {"recall@5": ENTRY, "f1": ENTRY, "em": ENTRY})
    assert rows == (row(0.75, True), row(0.5, False, "f1"), row(0.75, True, "em"))


def test_a_metric_that_the_run_lacks_is_neither_within_nor_not() -> None:
    assert compare_expected({}, {"f1": ENTRY}) == (row(None, None, "f1"),)


def test_nothing_expected_gives_nothing() -> None:
    assert compare_expected({"recall@5": 0.5}, {}) == ()


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        (["recall@5"], r"must map metrics to \{low, high, source, sure\}, got \['recall@5'\]"),
        ({"recal@5": ENTRY}, r"names 'recal@5', which is no metric; it takes recall@K"),
        ({"recall@0": ENTRY}, r"names 'recall@0', which is no metric"),
        ({5: ENTRY}, r"names 5, which is no metric"),
        ({"recall@5": 0.747}, r"expected.recall@5 must state low, high, source and sure, .* got 0.747"),
        ({"f1": {"low": 0.1, "high": 0.2}}, r"expected.f1 must state low, high, source and sure"),
        ({"f1": {**ENTRY, "mean": 0.7}}, r"and nothing else"),
        (
            {"f1": {**ENTRY, "low": 74.7}},
            r"expected.f1.low must be a share .* got 74.7; .* divide them by 100",
        ),
        ({"f1": {**ENTRY, "high": float("nan")}}, r"expected.f1.high must be a share from 0 to 1, got nan"),
        ({"f1": {**ENTRY, "low": True}}, r"expected.f1.low must be a share from 0 to 1, got True"),
        ({"f1": {**ENTRY, "low": "0.1"}}, r"expected.f1.low must be a share from 0 to 1, got '0.1'"),
        ({"f1": {**ENTRY, "low": 0.8}}, r"expected.f1 must have low at most high, got 0.8 and 0.767"),
        ({"f1": {**ENTRY, "source": " "}}, r"expected.f1.source must say where"),
        ({"f1": {**ENTRY, "sure": "D"}}, r"expected.f1.sure must be A .* got 'D'"),
    ],
)
def test_a_malformed_entry_is_one_plain_sentence(expected: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        compare_expected({"f1": 0.5}, expected)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("metric", ["recall@20", "title/all_recall@2", "title/mrr", "mrr", "em", "f1"])
def test_every_kind_of_metric_can_be_expected(metric: str) -> None:
    check_expected({metric: ENTRY})
