"""Standing in for an embedder that nobody has asked for."""

from collections.abc import Sequence

from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.errors import ConfigError
from hipporag_torch.protocols import EmbedderIdentity, Progress, no_progress
from hipporag_torch.types import Role


class AbsentEmbedder:
    """Has the identity of the embedder that an index was built with, and makes no vectors.

    Removing, checking and compacting need none; what does need one gets a `ConfigError` that names it.
    """

    def __init__(self, *, identity: EmbedderIdentity) -> None:
        self._identity = identity

    @property
    def identity(self) -> EmbedderIdentity:
        return self._identity

    def instruction(self, role: Role) -> str:
        return dict(self._identity.instructions).get(role, "")

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        raise ConfigError(
            f"{len(texts)} texts have to be embedded, but no embedder was stated; open the index with the "
            f"one that it was built with: {self._identity}"
        )

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [False] * len(texts)
