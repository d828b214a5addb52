"""Requests for embeddings to an OpenAI-compatible endpoint: batches of texts, and what comes back."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.embedders.openai_errors import NoEmbeddings, error_of
from hipporag_torch.llms.estimate import estimated_text_tokens
from hipporag_torch.llms.event_loop import Put
from hipporag_torch.llms.openai_client import Endpoint, imported_openai

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_SHOWN = 120


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Of one request: its texts, and their estimated tokens together."""

    texts: int
    tokens: int

    def batches(self, inputs: Sequence[str]) -> list[range]:
        """Rows that share a request, in order; a text beyond the limit of tokens is alone."""
        batches, start, tokens = [], 0, 0
        for row, text in enumerate(inputs):
            more = estimated_text_tokens(text)
            if row > start and (row - start == self.texts or tokens + more > self.tokens):
                batches.append(range(start, row))
                start, tokens = row, 0
            tokens += more
        return [*batches, range(start, len(inputs))] if inputs else []


class EmbeddingRequests:
    """What all requests of a call have in common. The options are those of `OpenAIEmbedder`."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        model: str,
        dimensions: int | None,
        concurrency: int,
        timeout_seconds: float,
        max_retries: int,
    ) -> None:
        self._endpoint, self._model, self._concurrency = endpoint, model, concurrency
        self._timeout_seconds, self._max_retries = timeout_seconds, max_retries
        self._body: dict[str, Any] = {"model": model, "encoding_format": "float"}
        if dimensions is not None:
            self._body["dimensions"] = dimensions
        self._key = endpoint.key()
        self._openai = imported_openai()
        self.retries = 0
        self.tokens = 0

    async def embed_all(
        self, inputs: Sequence[str], batches: Sequence[range], put: Put[tuple[range, Tensor]]
    ) -> None:
        """Puts the rows of every batch, in no fixed order."""
        waiting = iter(batches)

        async def work(client: "AsyncOpenAI") -> None:
            for batch in waiting:
                await put((batch, await self._embed(client, [inputs[row] for row in batch])))

        client = self._endpoint.client(
            self._key,
            deployment=self._model,
            timeout_seconds=self._timeout_seconds,
            max_retries=self._max_retries,
        )
        async with client:
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self._concurrency, len(batches))):
                        group.create_task(work(client))
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None

    async def _embed(self, client: "AsyncOpenAI", texts: list[str]) -> Float32[Tensor, "texts dim"]:
        try:
            raw = await client.embeddings.with_raw_response.create(input=texts, **self._body)
            self.retries += raw.retries_taken
            return self._rows(raw, len(texts))
        except (self._openai.OpenAIError, NoEmbeddings) as error:
            raise error_of(
                error,
                endpoint=self._endpoint,
                key=self._key,
                model=self._model,
                tries=self._max_retries + 1,
                timeout_seconds=self._timeout_seconds,
                texts=texts,
            ) from None

    def _rows(self, raw: Any, texts: int) -> Float32[Tensor, "texts dim"]:
        """The vectors in the order of the texts, whatever the order in the reply."""
        try:
            body = json.loads(raw.text)
        except ValueError:
            body = None
        rows = body.get("data") if isinstance(body, dict) else None
        if not isinstance(rows, list):
            raise NoEmbeddings(f"{raw.headers.get('content-type', 'no content type')}: {raw.text[:_SHOWN]}")
        vectors: dict[int, list[float]] = {}
        for place, row in enumerate(rows):
            vector = row.get("embedding") if isinstance(row, dict) else None
            if not isinstance(vector, list) or not all(isinstance(value, int | float) for value in vector):
                raise NoEmbeddings(f"an embedding that is no list of numbers: {row!r:.80}")
            vectors[row.get("index", place)] = vector
        lengths = {len(vector) for vector in vectors.values()}
        if len(rows) != texts or set(vectors) != set(range(texts)) or len(lengths) != 1:
            raise NoEmbeddings(
                f"{len(rows)} embeddings with {len(vectors)} numbers of texts and the lengths "
                f"{sorted(lengths)}, for {texts} texts"
            )
        used = body.get("usage") if isinstance(body, dict) else None
        counted = used.get("prompt_tokens") if isinstance(used, dict) else None
        self.tokens += counted if isinstance(counted, int) else 0
        return torch.tensor([vectors[row] for row in range(texts)], dtype=torch.float32)
