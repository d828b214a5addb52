"""An embedder without a model: signed feature hashing. For tests, demonstrations and CI."""

import re
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.embedders.check import checked_rows, checked_texts
from hipporag_torch.embedders.instructions import Instructions
from hipporag_torch.errors import ConfigError
from hipporag_torch.protocols import EmbedderIdentity, Progress, no_progress
from hipporag_torch.text import unicode_key
from hipporag_torch.types import Role

_WORD = re.compile(r"\w+")
_CHUNK = 1024
# To be raised whenever the same text would get another vector.
_VERSION = "hashing-1"


class HashingEmbedder:
    """Texts that share words or parts of words get similar vectors, in every script and process.

    A text without a letter or digit gets the zero vector. Nothing is ever truncated.

    dim: length of a vector, at least 1; more buckets mean fewer collisions.
    instructions: role → text whose features are added to those of every text of that role.
    """

    def __init__(self, *, dim: int = 256, instructions: Mapping[Role, str] | None = None) -> None:
        if dim < 1:
            raise ConfigError(f"embedder.dim must be at least 1, got {dim}")
        self._dim = dim
        self._instructions = Instructions(instructions)

    @property
    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity(
            name="hashing",
            weights=_VERSION,
            dim=self._dim,
            pooling="sum",
            instructions=self._instructions.as_tuple(),
        )

    def instruction(self, role: Role) -> str:
        return self._instructions.of(role)

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        texts = checked_texts(texts)
        instruction = _features(self.instruction(role))
        rows = torch.zeros(len(texts), self._dim)
        for start in range(0, len(texts), _CHUNK):
            chunk = texts[start : start + _CHUNK]
            rows[start : start + len(chunk)] = self._summed(chunk, instruction)
            progress(f"embed {role}", start + len(chunk), len(texts))
        return checked_rows(rows, texts, dim=self._dim, embedder="hashing")

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [False] * len(checked_texts(texts))

    def _summed(self, texts: list[str], instruction: list[str]) -> Float32[Tensor, "texts dim"]:
        buckets: list[int] = []
        signs: list[float] = []
        for row, text in enumerate(texts):
            # An instruction alone says nothing about a text in which there is nothing.
            features = _features(text)
            for feature in features + instruction if features else ():
                hashed = _hashed(feature)
                buckets.append(row * self._dim + hashed % self._dim)
                signs.append(1.0 if hashed >> 31 else -1.0)
        summed = torch.bincount(
            torch.tensor(buckets, dtype=torch.int64),
            weights=torch.tensor(signs, dtype=torch.float32),
            minlength=len(texts) * self._dim,
        )
        return summed.view(len(texts), self._dim).to(torch.float32)


def _features(text: str) -> list[str]:
    """The words of a text and their character 3-grams, which also serve scripts without spaces."""
    words = _WORD.findall(unicode_key(text))
    padded = [f" {word} " for word in words]
    return words + [word[start : start + 3] for word in padded for start in range(len(word) - 2)]


@lru_cache(maxsize=65_536)
def _hashed(feature: str) -> int:
    # Python's own hash() differs from process to process.
    return zlib.crc32(feature.encode("utf-8"))
