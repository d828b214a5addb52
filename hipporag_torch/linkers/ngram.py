"""Names that the index knows, found in the question word by word."""

from collections.abc import Sequence

from hipporag_torch.index import Index
from hipporag_torch.lexical import linking_tokens, token_rows
from hipporag_torch.linkers.capitalised import capitalised_spans
from hipporag_torch.linkers.links import Links
from hipporag_torch.linkers.resolution import check_min_cosine, phrase_rows, resolve, row_lists
from hipporag_torch.protocols import Embedder


class NgramLinker:
    """Links the names of the index that occur in a question, the longest ones, in any case and script.

    A question in which none occurs is searched for names by their capitals (see `capitalised_spans`): each
    stands for the phrase that it equals, or else for the nearest one by embedding. No model is asked.

    min_cosine: how near that phrase has to be, above 0 and at most 1.
    """

    def __init__(self, *, min_cosine: float = 0.7) -> None:
        check_min_cosine(min_cosine)
        self._min_cosine = min_cosine

    def link(self, index: Index, embedder: Embedder, questions: Sequence[str]) -> Links:
        """A row for each question, in order."""
        tokens = token_rows(questions, linking_tokens).to(index.phrase_emb.device)
        found = index.matcher.find(tokens)
        rows = row_lists(found)
        spans = [[] if row else capitalised_spans(text) for row, text in zip(rows, questions, strict=True)]
        if not any(spans):
            return Links.of(found)
        resolved = resolve(index, embedder, spans, min_cosine=self._min_cosine)
        return Links.of(
            phrase_rows(index, [row or nearest for row, nearest in zip(rows, resolved, strict=True)])
        )
