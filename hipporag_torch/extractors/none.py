"""No extraction: the index is searched by passage vectors alone."""

from collections.abc import Sequence

from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.types import Extraction, Passage


class NoExtractor:
    """Finds nothing, at no cost: every question takes the route `dense:no_facts`."""

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [Extraction(producer="none") for _ in passages]
