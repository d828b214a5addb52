"""An embedder that asks a cache first."""

from collections.abc import Sequence
from functools import partial

from jaxtyping import Bool, Float32
from torch import Tensor

from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.embedders.missing import embed_missing
from hipporag_torch.embedders.wrapped import WrappedEmbedder
from hipporag_torch.errors import ConfigError
from hipporag_torch.protocols import Embedder, Progress, no_progress
from hipporag_torch.types import Role


class CachedEmbedder(WrappedEmbedder):
    """Wraps any embedder: a text is embedded once per instruction, whatever its role, in any process.

    That holds for processes that run at once too: what is missing is embedded by one of them at a time, and
    the others take it from the cache. One that is killed leaves its turn to the next.

    embedder: what embeds the texts that the cache does not hold; its rows are checked.
    cache: where vectors are kept.
    chunk_size: texts after which what was embedded is stored, at least 1; an interrupted run keeps that.

    `hits` and `misses` count the distinct texts of each call: those that the cache held, maybe since another
    process embedded them meanwhile, and those that were embedded here.
    """

    def __init__(self, *, embedder: Embedder, cache: EmbeddingCache, chunk_size: int = 2048) -> None:
        if chunk_size < 1:
            raise ConfigError(f"embedder.chunk_size must be at least 1, got {chunk_size}")
        super().__init__(embedder)
        self._cache = cache
        self._chunk_size = chunk_size
        self.hits = 0
        self.misses = 0

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        """As every embedder's; `progress` counts distinct texts, those that the cache held included."""
        identity, instruction = self.identity, self.instruction(role)

        def known(unique: list[str]) -> tuple[Bool[Tensor, " texts"], Float32[Tensor, "texts dim"]]:
            found, rows = self._cache.get(identity, instruction, unique)
            self.hits += int(found.sum())
            return found, rows

        def keep(chunk: list[str], emb: Float32[Tensor, "texts dim"]) -> Float32[Tensor, "texts dim"]:
            self.misses += len(chunk)
            self._cache.put(identity, instruction, chunk, emb)
            return emb

        return embed_missing(
            self._embedder,
            texts,
            role,
            known=known,
            keep=keep,
            chunk_size=self._chunk_size,
            progress=progress,
            turn=partial(self._cache.turn, identity, instruction),
        )
