"""Any OpenAI-compatible endpoint for embeddings, Azure's included, through the official SDK."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.embedders.check import checked_rows, checked_texts, wrong_dimension
from hipporag_torch.embedders.cut import cut_at
from hipporag_torch.embedders.instructions import Instructions
from hipporag_torch.embedders.openai_requests import EmbeddingRequests, Limits
from hipporag_torch.errors import ConfigError
from hipporag_torch.llms.estimate import estimated_text_tokens
from hipporag_torch.llms.event_loop import Put, run_beside
from hipporag_torch.llms.openai_client import Endpoint
from hipporag_torch.protocols import EmbedderIdentity, Progress, no_progress
from hipporag_torch.types import Role


class OpenAIEmbedder:
    """Batches of texts, several requests in flight; the SDK retries, and heeds Retry-After.

    model: as the endpoint calls it; on Azure the deployment. dim: length of a vector; the first reply is
        checked against it. send_dimensions: ask for vectors of that length, where a model can shorten them.
    base_url: the API's address, which usually ends with /v1. None: OpenAI's own.
    api_key_env: the environment variable that holds the key, read at each call. None: no key is sent.
        An endpoint on this machine needs none either.
    api_version: makes `base_url` an Azure resource. headers: sent with each request, never shown.
    instructions: role → text put before every text of that role.
    max_tokens: tokens that are read of a text, instruction included. Services refuse longer texts, or cut
        them in silence; here they are cut before they are sent, by an estimate of their tokens that is
        rather high, and `truncated` names exactly those. None: nothing is cut here.
    batch_size, batch_tokens: the most texts of one request, and the most (estimated) tokens.
    concurrency: requests in flight, 1 to 1,000. timeout_seconds: of one try. max_retries: tries after the
        first. revision: of the model, if the service has one; recorded in the identity.

    A text without anything in it has the zero vector, and is not sent. `tokens` counts what the service
    says it read, `retries` what was sent again.
    """

    def __init__(
        self,
        *,
        model: str,
        dim: int,
        send_dimensions: bool = False,
        base_url: str | None = None,
        api_key_env: str | None = "OPENAI_API_KEY",
        api_version: str | None = None,
        headers: Mapping[str, str] | None = None,
        instructions: Mapping[Role, str] | None = None,
        max_tokens: int | None = 8192,
        batch_size: int = 256,
        batch_tokens: int = 100_000,
        concurrency: int = 8,
        timeout_seconds: float = 120.0,
        max_retries: int = 5,
        revision: str = "",
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise ConfigError(f"embedder.model must be the name of a model, got {model!r}")
        for option, value, least, most in (
            ("dim", dim, 1, None),
            ("max_tokens", max_tokens, 1, None),
            ("batch_size", batch_size, 1, None),
            ("batch_tokens", batch_tokens, 1, None),
            ("concurrency", concurrency, 1, 1000),
            ("max_retries", max_retries, 0, 100),
        ):
            if value is not None and (value < least or (most is not None and value > most)):
                span = f"at least {least}" if most is None else f"{least} to {most:,}"
                raise ConfigError(f"embedder.{option} must be {span}, got {value}")
        if not 0 < timeout_seconds < float("inf"):
            raise ConfigError(f"embedder.timeout_seconds must be above 0, got {timeout_seconds}")
        self._endpoint = Endpoint(base_url, api_key_env, api_version, dict(headers or {}), group="embedder")
        self._model, self._dim, self._revision = model, dim, revision
        self._dimensions = dim if send_dimensions else None
        self._instructions, self._max_tokens = Instructions(instructions), max_tokens
        self._limits = Limits(texts=batch_size, tokens=batch_tokens)
        self._concurrency = concurrency
        self._timeout_seconds, self._max_retries = timeout_seconds, max_retries
        self.retries = 0
        self.tokens = 0

    def __repr__(self) -> str:
        return f"OpenAIEmbedder(model={self._model!r}, endpoint={self._endpoint.url!r})"

    @property
    def identity(self) -> EmbedderIdentity:
        """Without the address: a model is the same wherever it is served."""
        return EmbedderIdentity(
            name=self._model,
            weights=self._revision,
            dim=self._dim,
            pooling="service",
            max_tokens=self._max_tokens,
            instructions=self._instructions.as_tuple(),
        )

    def instruction(self, role: Role) -> str:
        return self._instructions.of(role)

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        """As every embedder's. The first request that fails for good ends the call."""
        texts = checked_texts(texts)
        prompt = self.instruction(role)
        inputs = [self._read(prompt + text) for text in texts]
        asked = [row for row, text in enumerate(inputs) if text]
        emb = torch.zeros(len(texts), self._dim)
        done = len(texts) - len(asked)
        if done:
            progress(f"embed {role}", done, len(texts))
        if not asked:
            return emb
        wanted = [inputs[row] for row in asked]
        requests = self._requests()

        def take(item: tuple[range, Tensor]) -> None:
            nonlocal done
            batch, rows = item
            if rows.shape[1] != self._dim:
                raise wrong_dimension(self._model, declared=self._dim, real=rows.shape[1])
            own = [asked[place] for place in batch]
            emb[own] = checked_rows(rows, [texts[row] for row in own], dim=self._dim, embedder=self._model)
            done += len(own)
            progress(f"embed {role}", done, len(texts))

        async def produce(put: Put[tuple[range, Tensor]]) -> None:
            await requests.embed_all(wanted, self._limits.batches(wanted), put)

        try:
            run_beside(produce, take, most_waiting=2 * self._concurrency)
        finally:
            self.retries += requests.retries
            self.tokens += requests.tokens
        return emb

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        prompt = self.instruction(role)
        texts = checked_texts(texts)
        if self._max_tokens is None:
            return [False] * len(texts)
        return [estimated_text_tokens(prompt + text) > self._max_tokens for text in texts]

    def _read(self, text: str) -> str:
        return text if self._max_tokens is None else cut_at(text, self._max_tokens)

    def _requests(self) -> EmbeddingRequests:
        return EmbeddingRequests(
            self._endpoint,
            model=self._model,
            dimensions=self._dimensions,
            concurrency=self._concurrency,
            timeout_seconds=self._timeout_seconds,
            max_retries=self._max_retries,
        )
