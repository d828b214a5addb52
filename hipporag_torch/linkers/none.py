"""No linking: a question's words are left to its vector."""

from collections.abc import Sequence

from hipporag_torch.index import Index
from hipporag_torch.linkers.links import Links
from hipporag_torch.linkers.resolution import phrase_rows
from hipporag_torch.protocols import Embedder


class NoLinker:
    """Links nothing; no model, no cost."""

    def link(self, index: Index, embedder: Embedder, questions: Sequence[str]) -> Links:
        """An empty row for each question."""
        return Links.of(phrase_rows(index, [()] * len(questions)))
