"""An embedder and an extractor whose results are on the disk as soon as they are there.

What an interrupted change of a durable index had finished is not paid for again by the next one.
"""

from collections.abc import Mapping, Sequence

from jaxtyping import Bool, Float32
from torch import Tensor

from hipporag_torch.chat import Usage
from hipporag_torch.embedders.missing import embed_missing
from hipporag_torch.embedders.wrapped import WrappedEmbedder
from hipporag_torch.errors import BackendError, BudgetError
from hipporag_torch.protocols import (
    Embedder,
    Extractor,
    ExtractsEach,
    Progress,
    no_progress,
)
from hipporag_torch.store.session import Session
from hipporag_torch.types import Extraction, Passage, Role

_TEXTS_AT_ONCE = 2048
_PASSAGES_AT_ONCE = 256


class StagedEmbedder(WrappedEmbedder):
    """Wraps an embedder: the vectors of passages, phrases and facts go into the session's files at once.

    Vectors that stand there already, staged or of texts that were removed, are taken from there; `made`
    counts those that were not.
    """

    def __init__(self, *, embedder: Embedder, session: Session) -> None:
        super().__init__(embedder)
        self._session = session
        self.made = 0

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        """As every embedder's, rounded to what the index keeps."""
        if role not in ("passage", "phrase", "fact"):
            return self._embedder.embed(texts, role, progress)

        def known(unique: list[str]) -> tuple[Bool[Tensor, " texts"], Float32[Tensor, "texts dim"]]:
            return self._session.staged_vectors(role, unique)

        def keep(chunk: list[str], emb: Float32[Tensor, "texts dim"]) -> Float32[Tensor, "texts dim"]:
            self.made += len(chunk)
            return self._session.stage_vectors(role, chunk, emb)

        return embed_missing(
            self._embedder, texts, role, known=known, keep=keep, chunk_size=_TEXTS_AT_ONCE, progress=progress
        )


class StagedExtractor:
    """Wraps an extractor: extractions that did not fail are staged at once.

    That is as soon as their passage is finished where the extractor tells (`ExtractsEach`), else their block.
    `usage` adds up what the extractions took that were made here; the staged ones were paid for before.
    """

    def __init__(self, *, extractor: Extractor, session: Session) -> None:
        self._extractor = extractor
        self._session = session
        self.usage = Usage()

    @property
    def producer(self) -> str:
        return self._extractor.producer

    @property
    def calls_per_passage(self) -> int:
        return self._extractor.calls_per_passage

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        """One extraction per passage, in order; those that are staged are not made again."""
        done = self._session.staged_extractions(self.producer, [passage.id for passage in passages])
        missing = [passage for passage in passages if passage.id not in done]
        if done:
            progress("extract", len(done), len(passages))
        try:
            if isinstance(self._extractor, ExtractsEach):
                self._stage_each(self._extractor, missing, done, progress, len(passages))
            else:
                self._stage_blocks(missing, done, progress, len(passages))
        except BudgetError as error:
            error.finished = done | dict(error.finished)
            raise
        lacking = sum(passage.id not in done for passage in passages)
        if lacking:
            raise BackendError(f"the extractor gave nothing for {lacking} passages; expected one for each")
        return [done[passage.id] for passage in passages]

    def _stage_each(
        self,
        extractor: ExtractsEach,
        missing: Sequence[Passage],
        done: dict[str, Extraction],
        progress: Progress,
        total: int,
    ) -> None:
        held = len(done)

        def keep(passage: Passage, extraction: Extraction) -> None:
            done[passage.id] = extraction
            self._stage({passage.id: extraction})

        extractor.extract_each(missing, keep, lambda stage, n, _: progress(stage, held + n, total))

    def _stage_blocks(
        self, missing: Sequence[Passage], done: dict[str, Extraction], progress: Progress, total: int
    ) -> None:
        for start in range(0, len(missing), _PASSAGES_AT_ONCE):
            block = missing[start : start + _PASSAGES_AT_ONCE]
            held = len(done)
            made = self._extractor.extract(
                block, lambda stage, n, _, held=held: progress(stage, held + n, total)
            )
            if len(made) != len(block):
                raise BackendError(
                    f"the extractor gave {len(made)} extractions for {len(block)} passages; "
                    "expected one for each, in order"
                )
            extracted = dict(zip([passage.id for passage in block], made, strict=True))
            self._stage(extracted)
            done |= extracted

    def _stage(self, extracted: Mapping[str, Extraction]) -> None:
        self.usage = sum((extraction.usage for extraction in extracted.values()), self.usage)
        self._session.stage_extractions(
            {key: extraction for key, extraction in extracted.items() if extraction.status != "failed"}
        )
