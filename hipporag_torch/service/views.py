"""What the service holds of a memory."""

from dataclasses import dataclass

from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.index import Index
from hipporag_torch.protocols import Chunker, Extractor, Reader, Retriever


@dataclass(frozen=True)
class Opened:
    """An open memory with the parts that the service uses beside it.

    Its embedder, retriever and reader are asked from several threads at once; see `SharedEmbedder`.
    passages_read: how many the reader reads.
    """

    memory: HippoRAG
    extractor: Extractor
    reader: Reader
    chunker: Chunker | None = None
    passages_read: int = 5


@dataclass(frozen=True)
class View:
    """A committed generation that reads are answered from; it never changes."""

    generation: int
    index: Index
    retriever: Retriever


@dataclass(frozen=True)
class State:
    """What the service is doing: the write that runs, if any, and how many wait."""

    loaded: bool
    writing: str
    writes_waiting: int
