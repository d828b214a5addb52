"""Embedding only what is not known yet."""

import pytest
import torch
from torch import Tensor

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.embedders.missing import embed_missing
from hipporag_torch.errors import InputError

EMBEDDER = HashingEmbedder(dim=8)


class Shelf:
    """Keeps vectors by text; those that it gives back are marked by their sign."""

    def __init__(self, *texts: str) -> None:
        self.known_texts = set(texts)
        self.kept: list[list[str]] = []

    def known(self, texts: list[str]) -> tuple[Tensor, Tensor]:
        found = torch.tensor([text in self.known_texts for text in texts], dtype=torch.bool)
        return found, torch.where(found[:, None], -EMBEDDER.embed(texts, "phrase"), 0.0)

    def keep(self, texts: list[str], emb: Tensor) -> Tensor:
        self.kept.append(texts)
        return emb

    def embed(self, texts: list[str], chunk_size: int = 2) -> tuple[Tensor, list[tuple[str, int, int]]]:
        told: list[tuple[str, int, int]] = []
        emb = embed_missing(
            EMBEDDER,
            texts,
            "phrase",
            known=self.known,
            keep=self.keep,
            chunk_size=chunk_size,
            progress=lambda *step: told.append(step),
        )
        return emb, told


def test_each_distinct_text_is_asked_for_once_in_chunks_that_are_kept_as_they_come() -> None:
    shelf = Shelf("b")
    emb, told = shelf.embed(["a", "b", "c", "a", "d", "b"])
    assert shelf.kept == [["a", "c"], ["d"]]
    expected = EMBEDDER.embed(["a", "b", "c", "a", "d", "b"], "phrase")
    expected[[1, 5]] *= -1
    assert torch.equal(emb, expected)
    assert told[0] == ("embed phrase", 1, 4)
    assert told[-1][1:] == (4, 4)


def test_nothing_is_asked_for_what_is_known_or_for_nothing() -> None:
    for texts in (["a", "b", "a"], []):
        shelf = Shelf("a", "b")
        emb, _ = shelf.embed(texts)
        assert shelf.kept == []
        assert emb.shape == (len(texts), 8)


def test_one_string_is_not_a_list_of_texts() -> None:
    with pytest.raises(InputError, match="one string"):
        Shelf().embed("abc")  # pyright: ignore[reportArgumentType]
