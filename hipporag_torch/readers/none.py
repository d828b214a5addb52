"""No reading: retrieval alone is wanted."""

from collections.abc import Sequence

from hipporag_torch.types import Answer, Ranking


class NoReader:
    """Gives an empty answer to every question, and asks nothing."""

    def read(self, rankings: Sequence[Ranking]) -> list[Answer]:
        """One answer per ranking, in order."""
        return [Answer(r.question, "", (), (), 0.0, "nothing was read") for r in rankings]
