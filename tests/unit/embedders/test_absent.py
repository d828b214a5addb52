"""Standing in for an embedder or an extractor that nobody has asked for."""

import pytest

from hipporag_torch.embedders.absent import AbsentEmbedder
from hipporag_torch.errors import ConfigError
from hipporag_torch.extractors.absent import AbsentExtractor
from hipporag_torch.protocols import EmbedderIdentity
from hipporag_torch.types import Passage

IDENTITY = EmbedderIdentity("bge", "sha-1", 8, "cls", instructions=(("fact", "Fact: "),))


def test_it_has_the_identity_and_names_it_when_it_is_asked_for_vectors() -> None:
    embedder = AbsentEmbedder(identity=IDENTITY)
    assert embedder.identity == IDENTITY
    assert (embedder.instruction("fact"), embedder.instruction("passage")) == ("Fact: ", "")
    assert embedder.truncated(["a", "b"], "passage") == [False, False]
    with pytest.raises(ConfigError, match=r"2 texts have to be embedded.*name='bge', weights='sha-1'"):
        embedder.embed(["a", "b"], "passage")


def test_no_extractor_is_needed_for_no_passages() -> None:
    assert AbsentExtractor().extract([]) == []
    with pytest.raises(ConfigError, match=r"1 passages have to be extracted, but no extractor was stated"):
        AbsentExtractor().extract([Passage("p", "a")])
