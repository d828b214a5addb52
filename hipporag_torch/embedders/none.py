"""No vectors: an index that only its words are searched by."""

from collections.abc import Sequence

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.protocols import EmbedderIdentity, Progress, no_progress
from hipporag_torch.types import Role


class NoEmbedder:
    """Gives every text a vector of no numbers. Retrievers that compare vectors refuse it."""

    @property
    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity(name="none", weights="", dim=0, pooling="none")

    def instruction(self, role: Role) -> str:
        return ""

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        return torch.empty(len(texts), 0)

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [False] * len(texts)
