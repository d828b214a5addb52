"""No extraction: the index is searched by passage vectors alone."""

from collections.abc import Sequence

from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.types import Extraction, Passage


class NoExtractor:
    """Finds nothing, at no cost: every question takes the route `dense:no_facts`."""

    producer = "none"
    calls_per_passage = 0

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [Extraction(producer=self.producer) for _ in passages]
