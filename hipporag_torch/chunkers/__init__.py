"""Documents → the passages that they are cut into. Anything with the `Chunker` protocol can be injected."""

from hipporag_torch.chunkers.structure import StructureChunker
from hipporag_torch.chunkers.tokens import TokenChunker
from hipporag_torch.chunkers.whole import WholeDocument

__all__ = ["StructureChunker", "TokenChunker", "WholeDocument"]
