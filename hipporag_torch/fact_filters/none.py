"""No recognition memory: whatever matches best seeds the walk."""

from collections.abc import Sequence

from hipporag_torch.types import Fact, FilterDecision


class KeepAllFacts:
    """Keeps every fact that it is shown; no model, no cost."""

    def select(self, questions: Sequence[str], candidates: Sequence[Sequence[Fact]]) -> list[FilterDecision]:
        """One decision per question: all its candidates."""
        return [FilterDecision(kept=tuple(range(len(shown)))) for shown in candidates]
