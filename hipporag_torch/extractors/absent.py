"""Standing in for an extractor that nobody has asked for."""

from collections.abc import Sequence

from hipporag_torch.errors import ConfigError
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.types import Extraction, Passage


class AbsentExtractor:
    """Extracts nothing; asked to, it raises a `ConfigError`. Removing and retrieving need no extractor."""

    producer = "absent"
    calls_per_passage = 0

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        if not passages:
            return []
        raise ConfigError(
            f"{len(passages)} passages have to be extracted, but no extractor was stated; open the index "
            "with one (extractor=none indexes them by their vectors alone)"
        )
