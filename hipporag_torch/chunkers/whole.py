"""One passage per document: the setting of the papers."""

from hipporag_torch.types import Chunk, Document


class WholeDocument:
    """Leaves a document as it is: one chunk, with every character of the text."""

    def chunk(self, document: Document) -> list[Chunk]:
        """Exactly one chunk."""
        return [Chunk(text=document.text, start=0, end=len(document.text))]
