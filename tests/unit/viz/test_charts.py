from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.viz.charts import fitted, spread, widest


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ([], []),
        ([40.0], [40.0]),
        ([70.0, 20.0, 40.0], [70.0, 20.0, 40.0]),
        # Three that want one place stand around it, in the order given.
        ([50.0, 50.0, 50.0], [40.0, 50.0, 60.0]),
        ([48.0, 52.0, 90.0], [45.0, 55.0, 90.0]),
        # Pushed back from the ends.
        ([0.0, 1.0], [0.0, 10.0]),
        ([99.0, 100.0, 30.0], [90.0, 100.0, 30.0]),
    ],
)
def test_labels_stand_as_near_as_their_gap_allows(wanted: list[float], places: list[float]) -> None:
    assert spread(wanted, 10.0, 0.0, 100.0) == pytest.approx(places)


@given(st.lists(st.floats(-50, 150), min_size=1, max_size=14))
def test_spread_labels_keep_their_gap_their_order_and_the_bounds(wanted: list[float]) -> None:
    places = spread(wanted, 10.0, 0.0, 100.0)
    gap = min(10.0, 100.0 / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    sorted_places = [places[i] for i in order]
    assert all(b - a >= gap - 1e-6 for a, b in pairwise(sorted_places))
    assert -1e-6 <= min(places) <= max(places) <= 100 + 1e-6


def test_a_long_label_ends_in_an_ellipsis_within_its_width() -> None:
    label = fitted("the newspaper in which the engineer published", 120.0)
    assert label.endswith("…")
    assert label.startswith("the news")
    assert widest([label]) <= 120.0
    assert fitted("tern light", 120.0) == "tern light"
    assert fitted(" \x00\n", 120.0) == ""
