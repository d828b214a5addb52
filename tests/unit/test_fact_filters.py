from hipporag_torch.fact_filters import KeepAllFacts
from hipporag_torch.types import FilterDecision, Triple


def test_keeps_everything_that_it_is_shown() -> None:
    fact = Triple("ada vale", "founded", "northwind press")
    assert KeepAllFacts().select(["Who?", "Where?"], [[fact] * 3, []]) == [
        FilterDecision(kept=(0, 1, 2)),
        FilterDecision(kept=()),
    ]
