"""An embedder that asks a cache first."""

from collections.abc import Sequence

from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.embedders.check import checked_texts, embedded
from hipporag_torch.errors import ConfigError
from hipporag_torch.protocols import Embedder, EmbedderIdentity, Progress, no_progress
from hipporag_torch.types import Role


class CachedEmbedder:
    """Wraps any embedder: a text is embedded once per instruction, whatever its role, in any process.

    embedder: what embeds the texts that the cache does not hold; its rows are checked.
    cache: where vectors are kept.
    chunk_size: texts after which what was embedded is stored, at least 1; an interrupted run keeps that.

    `hits` and `misses` count the distinct texts of each call that the cache held, or did not.
    """

    def __init__(self, *, embedder: Embedder, cache: EmbeddingCache, chunk_size: int = 2048) -> None:
        if chunk_size < 1:
            raise ConfigError(f"embedder.chunk_size must be at least 1, got {chunk_size}")
        self._embedder = embedder
        self._cache = cache
        self._chunk_size = chunk_size
        self.hits = 0
        self.misses = 0

    @property
    def identity(self) -> EmbedderIdentity:
        return self._embedder.identity

    def instruction(self, role: Role) -> str:
        return self._embedder.instruction(role)

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return self._embedder.truncated(texts, role)

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        """As every embedder's; `progress` counts distinct texts, those that the cache held included."""
        row_of = {text: row for row, text in enumerate(dict.fromkeys(checked_texts(texts)))}
        unique = list(row_of)
        identity, instruction = self.identity, self.instruction(role)
        found, rows = self._cache.get(identity, instruction, unique)
        missing = [row for row, known in enumerate(found.tolist()) if not known]
        held = len(unique) - len(missing)
        self.hits += held
        self.misses += len(missing)
        if held:
            progress(f"embed {role}", held, len(unique))
        for start in range(0, len(missing), self._chunk_size):
            chosen = missing[start : start + self._chunk_size]
            chunk = [unique[row] for row in chosen]
            shifted = _shifted(progress, by=held + start, total=len(unique))
            emb = embedded(self._embedder, chunk, role, shifted)
            self._cache.put(identity, instruction, chunk, emb)
            rows[chosen] = emb
        return rows if len(unique) == len(texts) else rows[[row_of[text] for text in texts]]


def _shifted(progress: Progress, *, by: int, total: int) -> Progress:
    """Progress within a chunk, told as progress of the whole call."""
    return lambda stage, done, _: progress(stage, by + done, total)
