"""What went wrong at an OpenAI-compatible endpoint for embeddings."""

import re
from collections.abc import Sequence
from typing import Any

from hipporag_torch.errors import BackendError, ConfigError, HippoRAGError
from hipporag_torch.llms.estimate import estimated_text_tokens
from hipporag_torch.llms.openai_client import Endpoint, imported_openai
from hipporag_torch.llms.openai_errors import Asked

_TOO_LONG = re.compile(
    r"context.{0,20}(length|size|window)|maximum.{0,20}(length|tokens)|too (long|many tokens|large)"
    r"|input.{0,20}length",
    re.IGNORECASE,
)


class NoEmbeddings(Exception):  # noqa: N818
    """The endpoint answered with success, but not with an embedding for each text."""


def error_of(
    error: Exception,
    *,
    endpoint: Endpoint,
    key: str,
    model: str,
    tries: int,
    timeout_seconds: float,
    texts: Sequence[str],
) -> HippoRAGError:
    """The error to raise: a `ConfigError` for what an option heals, else a `BackendError`."""
    openai = imported_openai()
    asked = Asked(
        url=endpoint.url,
        model=model,
        key_env=endpoint.api_key_env,
        azure=endpoint.api_version is not None,
        formatted=False,
        max_tokens=0,
        prompt_tokens=max(map(estimated_text_tokens, texts)),
        timeout_seconds=timeout_seconds,
        tries=tries,
        secrets=endpoint.secrets(key),
    )
    if isinstance(error, NoEmbeddings):
        return BackendError(
            f"{asked.url} did not give the embeddings that it was asked for, but {asked.clean(str(error))}; "
            "embedder.base_url must be the address that /embeddings is put behind, and usually ends with /v1"
        )
    if isinstance(error, openai.APIStatusError):
        return _status(error, asked, len(texts))
    if isinstance(error, openai.APITimeoutError):
        return BackendError(
            f"{asked.url} did not answer within {timeout_seconds:g} s, tried {tries} times; raise "
            "embedder.timeout_seconds, or lower embedder.batch_size or embedder.concurrency"
        )
    cause = error.__cause__ or error
    return BackendError(
        f"{asked.url} cannot be reached or broke off ({asked.clean(f'{type(cause).__name__}: {cause}')}), "
        f"tried {tries} times; start the service, or correct embedder.base_url"
    )


def _status(error: Any, asked: Asked, texts: int) -> HippoRAGError:
    status, said = error.status_code, asked.clean(_said(error))
    code, param = str(error.code or ""), str(error.param or "")
    key = f"the key in {asked.key_env}" if asked.key_env else "the request without a key"
    if status in (401, 403):
        return ConfigError(
            f"{asked.url} refuses {key} ({status}): {said}; check the key, that it belongs to this endpoint, "
            f"and that it may use the model {asked.model}"
        )
    if status == 402 or "insufficient_quota" in (code, str(error.type or "")):
        return BackendError(f"{asked.url}: the account of {key} has no credit left ({status}): {said}")
    if status == 404:
        return ConfigError(
            f"{asked.url} knows no model {asked.model!r}, or nothing is at that address (404): {said}; set "
            f"embedder.model{', the deployment,' if asked.azure else ''} or embedder.base_url, which usually "
            "ends with /v1"
        )
    if status in (400, 422) and ("dimension" in param or "dimension" in said.lower()):
        return ConfigError(
            f"{asked.url} takes no such dimensions for {asked.model} ({status}): {said}; set "
            "embedder.send_dimensions=false, or embedder.dim to a length that the model has"
        )
    if status in (400, 413, 422, 500) and _TOO_LONG.search(_said(error)):
        return BackendError(
            f"a request of {texts} texts, the longest of about {asked.prompt_tokens:,} tokens, is too long "
            f"for {asked.model} ({status}): {said}; lower embedder.max_tokens, where texts are cut, "
            "or embedder.batch_tokens"
        )
    return BackendError(f"{asked.url} answered {status}, tried up to {asked.tries} times: {said}")


def _said(error: Any) -> str:
    body = error.body if isinstance(error.body, dict) else {}
    message = body.get("message")
    return message if isinstance(message, str) and message else error.message
