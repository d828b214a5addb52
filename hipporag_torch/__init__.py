"""hipporag_torch: the HippoRAG 2 document memory on PyTorch."""

from hipporag_torch.errors import HippoRAGError
from hipporag_torch.graph_construction import GraphOptions
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.ops.ppr import PPROptions
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Document, Passage, Ranking, Triple

__all__ = [
    "Document",
    "GraphOptions",
    "HippoRAG",
    "HippoRAGError",
    "Index",
    "Indexer",
    "PPROptions",
    "Passage",
    "Ranking",
    "TextOptions",
    "Triple",
]
