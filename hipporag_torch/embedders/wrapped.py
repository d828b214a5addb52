"""What an embedder has from the one that it wraps."""

from collections.abc import Sequence

from hipporag_torch.protocols import Embedder, EmbedderIdentity
from hipporag_torch.types import Role


class WrappedEmbedder:
    """Identity, instructions and cuts of the embedder inside; its vectors are the wrapper's own matter."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def identity(self) -> EmbedderIdentity:
        return self._embedder.identity

    def instruction(self, role: Role) -> str:
        return self._embedder.instruction(role)

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return self._embedder.truncated(texts, role)
