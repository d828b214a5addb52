import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.evaluation.bootstrap import Resampled, resample

VALUES = st.lists(st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 0.9, 1.0]), min_size=1, max_size=40)


def one(values: list[float], *, resamples: int = 400, seed: int = 0) -> Resampled:
    (found,) = resample([values], resamples=resamples, seed=seed)
    return found


def same(a: Resampled, b: Resampled) -> bool:
    numbers = [(found.rows, found.scale, found.total, found.totals.tobytes()) for found in (a, b)]
    return numbers[0] == numbers[1]


def test_totals_are_those_of_the_rows_drawn() -> None:
    """More rows than one block of draws holds."""
    values = np.random.default_rng(1).integers(0, 5, 3000) / 4
    found = one(list(values), resamples=1000, seed=7)
    drawn = values[np.random.default_rng(7).integers(0, 3000, (1000, 3000))]
    assert (found.totals / found.scale == drawn.sum(axis=1)).all()
    assert found.mean == values.mean()


@given(VALUES)
def test_the_interval_contains_the_mean(values: list[float]) -> None:
    found = one(values)
    low, high = found.bounds(0.95)
    assert 0 <= low <= found.mean <= high <= 1
    assert found.mean == pytest.approx(np.mean(values), abs=1e-12)


@given(VALUES, st.integers(0, 3))
def test_the_same_seed_gives_the_same_bytes_in_any_company(values: list[float], others: int) -> None:
    columns = [[0.25] * len(values)] * others + [values, [0.5] * (len(values) + 1)]
    assert same(resample(columns, resamples=400, seed=2)[others], one(values, seed=2))


@given(VALUES)
def test_a_smaller_share_of_confidence_gives_no_wider_interval(values: list[float]) -> None:
    found = one(values)
    bounds = [found.bounds(confidence) for confidence in (0.99, 0.95, 0.8, 0.5)]
    assert [low for low, _ in bounds] == sorted(low for low, _ in bounds)
    assert [high for _, high in bounds] == sorted((high for _, high in bounds), reverse=True)


def test_equal_values_leave_no_doubt() -> None:
    found = one([1 / 3] * 7)
    assert (found.mean, *found.bounds(0.95)) == (1 / 3, 1 / 3, 1 / 3)


def test_a_difference_is_paired() -> None:
    a, b = resample([[0.0, 0.5, 0.25], [0.5, 1.0, 0.75]], resamples=200, seed=0)
    assert (b - a).bounds(0.95) == (0.5, 0.5)
    assert ((b - a).share_positive, (a - b).share_positive) == (1.0, 0.0)


def test_values_without_an_exact_share_cancel_out() -> None:
    """0.7 + 0.1 − 0.8 leaves a last bit in doubles, and so does the mean of their resamples."""
    a, b = resample([[0.7, 0.1, 0.0], [0.0, 0.0, 0.8]], resamples=4000, seed=0)
    counts = np.apply_along_axis(
        np.bincount, 1, np.random.default_rng(0).integers(0, 3, (4000, 3)), minlength=3
    )
    assert (b - a).share_positive == (counts @ np.array([-7, -1, 8]) > 0).mean()
