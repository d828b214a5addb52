"""Which phrases of an index a question names."""

from hipporag_torch.linkers.links import Linker, Links
from hipporag_torch.linkers.llm import LLMLinker
from hipporag_torch.linkers.ngram import NgramLinker
from hipporag_torch.linkers.none import NoLinker
from hipporag_torch.linkers.spacy import SpacyLinker

__all__ = ["LLMLinker", "Linker", "Links", "NgramLinker", "NoLinker", "SpacyLinker"]
