"""Putting the same text behind every text: models that want their end mark to be written out."""

from collections.abc import Sequence
from dataclasses import replace

from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.protocols import Embedder, EmbedderIdentity, Progress, no_progress
from hipporag_torch.types import Role


class SuffixedEmbedder:
    """Wraps any embedder. The suffix is part of the identity's name; a text that is cut loses it."""

    def __init__(self, *, embedder: Embedder, suffix: str) -> None:
        self._embedder, self._suffix = embedder, suffix

    @property
    def identity(self) -> EmbedderIdentity:
        identity = self._embedder.identity
        return replace(identity, name=f"{identity.name} + {self._suffix}")

    def instruction(self, role: Role) -> str:
        return self._embedder.instruction(role)

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        return self._embedder.embed(self._suffixed(texts), role, progress)

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return self._embedder.truncated(self._suffixed(texts), role)

    def _suffixed(self, texts: Sequence[str]) -> Sequence[str]:
        # What is no list of texts is for the embedder to refuse.
        if isinstance(texts, str):
            return texts
        return [text + self._suffix if isinstance(text, str) else text for text in texts]
