import pytest
import torch

from hipporag_torch.errors import InputError
from hipporag_torch.ops import pairs as pairs_module
from hipporag_torch.ops.pairs import Pairs, similar_pairs


def as_list(pairs: Pairs) -> list[tuple[int, int, float]]:
    return list(zip(pairs.first_idx.tolist(), pairs.second_idx.tolist(), pairs.cosine.tolist(), strict=True))


def pairs_of(*rows: tuple[int, int, float]) -> Pairs:
    first, second, cosine = zip(*rows, strict=True)
    return Pairs(torch.tensor(first), torch.tensor(second), torch.tensor(cosine))


def unit(rows: list[list[float]], device: torch.device) -> torch.Tensor:
    table = torch.tensor(rows, device=device)
    return table / table.norm(dim=1, keepdim=True).clamp(min=1e-30)


class TestSimilarPairs:
    def test_pairs_ascend_with_their_cosines(self, device: torch.device):
        emb = unit([[3.0, 4.0], [0.0, 1.0], [1.0, 0.0], [3.0, 4.0]], device)
        found = as_list(similar_pairs(emb, threshold=0.7))
        assert [pair[:2] for pair in found] == [(0, 1), (0, 3), (1, 3)]
        assert [pair[2] for pair in found] == pytest.approx([0.8, 1, 0.8])

    @pytest.mark.parametrize("tile", [1, 2, 3, 100])
    def test_identical_vectors_pair_with_each_other_once(self, device: torch.device, tile: int):
        found = similar_pairs(torch.ones(4, 1, device=device), threshold=1.0, tile=tile)
        assert as_list(found) == [(i, j, 1.0) for i in range(4) for j in range(i + 1, 4)]

    def test_a_zero_vector_is_similar_to_nothing(self, device: torch.device):
        emb = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]], device=device)
        assert as_list(similar_pairs(emb, threshold=1e-4)) == [(1, 3, 1.0)]

    def test_a_pair_exactly_at_the_threshold_is_in(self, device: torch.device):
        emb = unit([[1.0, 2.0, 3.0], [3.0, 2.0, 1.5]], device)
        cosine = as_list(similar_pairs(emb, threshold=0.1))[0][2]
        above = torch.nextafter(torch.tensor(cosine), torch.tensor(2.0)).item()
        assert len(similar_pairs(emb, threshold=cosine)) == 1
        assert len(similar_pairs(emb, threshold=above)) == 0

    def test_a_threshold_above_1_finds_nothing(self, device: torch.device):
        assert len(similar_pairs(torch.ones(5, 1, device=device), threshold=1.1)) == 0

    @pytest.mark.parametrize("num_rows", [0, 1])
    def test_too_few_rows_for_a_pair(self, device: torch.device, num_rows: int):
        assert as_list(similar_pairs(torch.ones(num_rows, 3, device=device), threshold=0.1)) == []

    def test_only_pairs_with_a_new_row_are_found(self, device: torch.device):
        emb = torch.ones(4, 1, device=device)
        new = torch.tensor([False, True, False, True])
        found = similar_pairs(emb, threshold=0.9, new=new, tile=1)
        assert [pair[:2] for pair in as_list(found)] == [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)]
        assert as_list(similar_pairs(emb, threshold=0.9, new=torch.zeros(4, dtype=torch.bool))) == []

    def test_pairs_stay_on_the_cpu(self, device: torch.device):
        found = similar_pairs(torch.ones(2, 1, device=device), threshold=0.9)
        assert {part.device.type for part in (found.first_idx, found.second_idx, found.cosine)} == {"cpu"}

    def test_vectors_that_are_all_alike_are_refused_before_memory_ends(
        self, device: torch.device, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(pairs_module, "_MAX_PAIRS", 5)
        assert len(similar_pairs(torch.ones(3, 1, device=device), threshold=0.9)) == 3
        with pytest.raises(
            InputError, match=r"more than 5 pairs of 4 phrases have a cosine of at least 0\.9; raise"
        ):
            similar_pairs(torch.ones(4, 1, device=device), threshold=0.9, tile=1)

    def test_progress_ends_at_the_number_of_new_rows(self):
        seen: list[tuple[str, int, int]] = []
        similar_pairs(torch.ones(5, 1), threshold=0.9, tile=2, progress=lambda *args: seen.append(args))
        assert seen == [("synonyms", 2, 5), ("synonyms", 4, 5), ("synonyms", 5, 5)]


class TestPairs:
    def test_renumbering_sorts_anew_and_drops_what_went(self):
        pairs = pairs_of((0, 1, 0.9), (0, 2, 0.8), (1, 3, 0.95), (2, 3, 0.85))
        renumbered = pairs.renumbered(torch.tensor([5, -1, 1, 0]))
        assert as_list(renumbered) == as_list(pairs_of((0, 1, 0.85), (1, 5, 0.8)))

    def test_merging_sorts_both_sets(self):
        merged = pairs_of((0, 3, 0.9), (2, 3, 0.8)).merged(pairs_of((0, 1, 0.95), (1, 2, 0.85)))
        assert as_list(merged) == as_list(pairs_of((0, 1, 0.95), (0, 3, 0.9), (1, 2, 0.85), (2, 3, 0.8)))

    def test_no_pairs_change_nothing(self):
        pairs = pairs_of((0, 1, 0.5))
        assert len(Pairs.none()) == 0
        assert as_list(pairs.merged(Pairs.none())) == as_list(Pairs.none().merged(pairs)) == as_list(pairs)
        assert len(Pairs.none().renumbered(torch.tensor([0, 1]))) == 0
