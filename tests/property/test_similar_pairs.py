import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from hipporag_torch.ops.pairs import Pairs, similar_pairs

SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
THRESHOLD = st.sampled_from([0.2, 0.5, 0.8, 0.95, 1.0])
TILE = st.sampled_from([1, 2, 3, 5, 2048])


@st.composite
def unit_rows(draw: st.DrawFn) -> Tensor:
    """Up to 14 unit vectors: few directions repeated, near copies of them, and zeros."""
    dim = draw(st.integers(1, 17))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    directions = torch.randn(4, dim, generator=generator)
    kinds = draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 1e-7, 0.3, 1.0])), max_size=14))
    rows = [directions[i] + noise * torch.randn(dim, generator=generator) for i, noise in kinds]
    emb = torch.stack(rows) if rows else torch.empty(0, dim)
    emb = emb / emb.norm(dim=1, keepdim=True)
    zero = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    return emb * (1 - torch.tensor(zero).float().reshape(-1, 1))


def assert_same(got: Pairs, expected: Pairs) -> None:
    assert torch.equal(got.first_idx, expected.first_idx)
    assert torch.equal(got.second_idx, expected.second_idx)
    assert torch.equal(got.cosine.view(torch.int32), expected.cosine.view(torch.int32))


@SETTINGS
@given(emb=unit_rows(), threshold=THRESHOLD)
def test_they_are_the_pairs_of_a_float64_product(device: torch.device, emb: Tensor, threshold: float) -> None:
    found = similar_pairs(emb.to(device), threshold=threshold)
    cosine = (emb.double() @ emb.double().T).float()
    first, second = torch.triu(cosine >= threshold, diagonal=1).nonzero(as_tuple=True)
    assert torch.equal(found.first_idx, first)
    assert torch.equal(found.second_idx, second)
    torch.testing.assert_close(found.cosine, cosine[first, second], atol=1e-7, rtol=0)


@SETTINGS
@given(emb=unit_rows(), threshold=THRESHOLD, tile=TILE)
def test_tiles_decide_nothing(device: torch.device, emb: Tensor, threshold: float, tile: int) -> None:
    found = similar_pairs(emb.to(device), threshold=threshold, tile=tile)
    assert_same(found, similar_pairs(emb.to(device), threshold=threshold))


@SETTINGS
@given(emb=unit_rows(), threshold=THRESHOLD, tile=TILE, data=st.data())
def test_old_pairs_and_new_ones_are_all_pairs(
    device: torch.device, emb: Tensor, threshold: float, tile: int, data: st.DataObject
) -> None:
    count = len(emb)
    new = torch.tensor(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=torch.bool)
    emb = emb.to(device)
    old_idx = (~new).nonzero()[:, 0]
    of_old = similar_pairs(emb[old_idx.to(device)], threshold=threshold).renumbered(old_idx)
    with_new = similar_pairs(emb, threshold=threshold, new=new, tile=tile)
    assert_same(of_old.merged(with_new), similar_pairs(emb, threshold=threshold))


@SETTINGS
@given(emb=unit_rows(), threshold=THRESHOLD, data=st.data())
def test_the_numbering_of_rows_does_not_count(emb: Tensor, threshold: float, data: st.DataObject) -> None:
    order = torch.tensor(data.draw(st.permutations(range(len(emb)))), dtype=torch.int64)
    found = similar_pairs(emb[order], threshold=threshold)
    assert_same(found.renumbered(order), similar_pairs(emb, threshold=threshold))


@SETTINGS
@given(emb=unit_rows(), data=st.data())
def test_any_pair_s_own_cosine_as_the_threshold_keeps_it(emb: Tensor, data: st.DataObject) -> None:
    every = similar_pairs(emb, threshold=1e-3)
    assume(len(every))
    chosen = every.cosine[data.draw(st.integers(0, len(every) - 1))].item()
    kept = similar_pairs(emb, threshold=chosen)
    assert torch.equal(kept.cosine, every.cosine[every.cosine >= chosen])
    assert bool((kept.cosine == chosen).any())
