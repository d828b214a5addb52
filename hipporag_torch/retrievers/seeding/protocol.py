"""What a way to seed the walk has to tell the retriever."""

from collections.abc import Sequence
from typing import Protocol

from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.index import Index
from hipporag_torch.retrievers.seeding.evidence import ConsideredFacts, Evidence
from hipporag_torch.retrievers.seeding.sources import SeedSource


class Seeding(Protocol):
    """Questions → the facts to consider; evidence → where the walk restarts."""

    @property
    def num_facts(self) -> int:
        """How many facts to consider for each question, at most."""
        ...

    @property
    def wants_links(self) -> bool:
        """Whether the phrases that a question names play a part."""
        ...

    @property
    def start_exponent(self) -> float:
        """How the masses of the sources' walks make a score; 1 is one walk from all of them."""
        ...

    def consider(
        self, index: Index, questions: Sequence[str], to_fact: Float32[Tensor, "queries dim"]
    ) -> ConsideredFacts:
        """The best facts of each question; `to_fact` are the questions' vectors for facts."""
        ...

    def shown_scores(self, facts: ConsideredFacts) -> Float32[Tensor, "queries facts"]:
        """The scores of the facts as a trace shows them, in [0, 1]."""
        ...

    def sources(self, index: Index, evidence: Evidence) -> tuple[SeedSource, ...]:
        """What the walk restarts from, in a fixed order; the reset is their sum.

        Each question names a phrase or has a kept fact that does; its reset is positive, not necessarily 1.
        """
        ...
