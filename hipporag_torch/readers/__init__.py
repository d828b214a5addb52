"""Readers: ranked passages → an answer. The extractive one needs no language model, and says so."""

from hipporag_torch.readers.extractive import EXTRACTIVE, ExtractiveReader
from hipporag_torch.readers.llm import LLMReader
from hipporag_torch.readers.sentences import split_sentences

__all__ = ["EXTRACTIVE", "ExtractiveReader", "LLMReader", "split_sentences"]
