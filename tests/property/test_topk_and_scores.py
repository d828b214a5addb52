import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hipporag_torch.ops.scores import minmax
from hipporag_torch.ops.topk import stable_topk, table_topk

SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FLOATS = st.floats(width=32, allow_nan=False)
# Few values, so that most rows tie.
TIED = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0**-149, -(2.0**-149), float("inf"), float("-inf")])


def rows_of(values: st.SearchStrategy[float], max_rows: int = 4) -> st.SearchStrategy[list[list[float]]]:
    return st.integers(0, 25).flatmap(
        lambda width: st.lists(
            st.lists(values, min_size=width, max_size=width), min_size=1, max_size=max_rows
        )
    )


@SETTINGS
@given(rows=rows_of(TIED) | rows_of(FLOATS), k=st.integers(0, 30))
def test_topk_is_a_sort_by_score_and_index(device: torch.device, rows: list[list[float]], k: int) -> None:
    top = stable_topk(torch.tensor(rows, device=device), k)
    expected = [sorted(range(len(row)), key=lambda i, row=row: (-row[i], i))[:k] for row in rows]
    assert top.idx.tolist() == expected
    assert top.scores.tolist() == [[row[i] for i in idx] for row, idx in zip(rows, expected, strict=True)]


@SETTINGS
@given(
    table=st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=30),
    queries=st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=3),
    k=st.integers(0, 12),
    block_rows=st.integers(1, 31),
)
def test_blocks_of_a_table_do_not_count(
    device: torch.device, table: list[list[int]], queries: list[list[int]], k: int, block_rows: int
) -> None:
    rows, columns = torch.tensor(table).float(), torch.tensor(queries).float()
    top = table_topk(rows.to(device), columns.to(device), k, block_rows=block_rows)
    scores = columns @ rows.T
    whole = stable_topk(scores, k)
    assert torch.equal(top.idx.cpu(), whole.idx)
    assert torch.equal(top.scores.cpu(), whole.scores)
    assert torch.equal(top.lowest.cpu(), scores.amin(1))
    assert torch.equal(top.highest.cpu(), scores.amax(1))


@SETTINGS
@given(
    rows=st.integers(1, 20).flatmap(
        lambda width: st.lists(
            st.lists(st.floats(-1e6, 1e6, width=32), min_size=width, max_size=width), min_size=1, max_size=4
        )
    )
)
def test_minmax_is_its_formula(device: torch.device, rows: list[list[float]]) -> None:
    got = minmax(torch.tensor(rows, device=device)).cpu()
    for scaled, row in zip(got, np.array(rows), strict=True):
        spread = row.max() - row.min()
        if spread == 0:
            assert bool((scaled == 1).all())
        elif spread > 1e-20:
            np.testing.assert_allclose(scaled.numpy(), (row - row.min()) / spread, atol=1e-6)
            assert scaled[row.argmax()] == 1
            assert scaled[row.argmin()] == 0
