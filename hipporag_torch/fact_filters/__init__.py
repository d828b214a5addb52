"""Recognition memory: which of the best-matching facts are allowed to seed the walk."""

from hipporag_torch.fact_filters.llm import LLMFactFilter
from hipporag_torch.fact_filters.none import KeepAllFacts

__all__ = ["KeepAllFacts", "LLMFactFilter"]
