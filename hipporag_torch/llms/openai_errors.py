"""What went wrong at an OpenAI-compatible endpoint: for one prompt, or for all alike."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hipporag_torch.chat import ChatReply
from hipporag_torch.errors import BackendError, ConfigError, HippoRAGError
from hipporag_torch.llms.openai_client import imported_openai

_TOO_LONG = re.compile(
    r"context.{0,20}(length|size|window)|(length|size|window).{0,20}context"
    r"|prompt is too long|too many tokens",
    re.IGNORECASE,
)
_FORMAT = re.compile(r"response_format|json_schema|json_object|grammar|structured|guided", re.IGNORECASE)
_SETTINGS = ("temperature", "max_tokens", "max_completion_tokens", "seed", "model", "extra_body")
_LONGEST = 300
_HINT = 8


class NoCompletion(Exception):  # noqa: N818
    """The endpoint answered with success, but not with a chat completion."""

    def __init__(self, content_type: str, start: str) -> None:
        super().__init__(f"answered {content_type or 'no content type'}: {start}")


@dataclass(frozen=True)
class Asked:
    """What was asked of whom, as far as errors name it."""

    url: str
    model: str
    key_env: str | None
    azure: bool
    formatted: bool
    max_tokens: int
    prompt_tokens: int
    timeout_seconds: float
    tries: int
    secrets: Sequence[str]

    def clean(self, text: str) -> str:
        """A server's words: on one line, shortened, without the key or the start of it."""
        for secret in self.secrets:
            text = re.sub(re.escape(secret[:_HINT]) + r"\S*", "***", text.replace(secret, "***"))
        text = " ".join(text.split())
        return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def endpoint_is_down(error: Exception) -> bool:
    """Whether an error speaks of the endpoint rather than of the prompt."""
    openai = imported_openai()
    status = getattr(error, "status_code", None)
    return (status is not None and status >= 500) or isinstance(
        error, openai.APIConnectionError | NoCompletion
    )


def failed(error: Exception, asked: Asked, *, answered_before: bool) -> ChatReply:
    """The reply that stands for a failure. Raises what concerns all prompts alike.

    answered_before: whether the endpoint ever gave a reply to this batch; then a refused connection, or
    anything else that may pass, is this prompt's failure only.
    """
    openai = imported_openai()
    if isinstance(error, UnicodeError):
        return _permanent("the prompt holds half of a surrogate pair, which is no Unicode text")
    if isinstance(error, openai.APIStatusError):
        return _status(error, asked, answered_before)
    unreached = type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout")
    if isinstance(error, openai.APIConnectionError) and unreached and not answered_before:
        raise BackendError(
            f"{asked.url} cannot be reached ({_cause(error, asked)}), tried {asked.tries} times; start the "
            "service, or correct llm.base_url"
        ) from None
    if isinstance(error, openai.APITimeoutError):
        why = (
            f"no reply within {asked.timeout_seconds:g} s, tried {asked.tries} times; raise "
            "llm.timeout_seconds or lower llm.concurrency"
        )
        return ChatReply("", "error", error=why)
    if isinstance(error, openai.APIConnectionError):
        why = f"the connection to {asked.url} failed ({_cause(error, asked)}), tried {asked.tries} times"
        return ChatReply("", "error", error=why)
    why = f"{asked.url}: {asked.clean(str(error))}"
    if not answered_before and isinstance(error, NoCompletion):
        raise BackendError(
            f"{asked.url} is no OpenAI-compatible API: it {asked.clean(str(error))}; llm.base_url must be "
            "the address that /chat/completions is put behind, and usually ends with /v1"
        ) from None
    return ChatReply("", "error", error=why)


def never_answered(asked: Asked, reason: str, failures: int) -> BackendError:
    """The endpoint failed again and again and answered nothing at all."""
    return BackendError(
        f"{asked.url} answered none of the first {failures} prompts, the last one: {reason}; check that the "
        "service runs, and llm.base_url"
    )


def _status(error: Any, asked: Asked, answered_before: bool) -> ChatReply:
    status, said = error.status_code, asked.clean(_said(error))
    if (whole := _all_alike(error, asked, said, answered_before)) is not None:
        raise whole from None
    code, kind = str(error.code or ""), str(error.type or "")
    if "content_filter" in (code, kind) or "content_policy" in code:
        return ChatReply("", "refused", error=f"refused by the content filter: {said}", permanent=True)
    long_code = "context_length_exceeded" in (code, kind) or kind == "exceed_context_size_error"
    if status in (400, 413, 422) and (status == 413 or long_code or _TOO_LONG.search(_said(error))):
        return _permanent(
            f"the prompt (about {asked.prompt_tokens:,} tokens) and a reply of up to {asked.max_tokens:,} do "
            f"not fit into the context of {asked.model}: {said}; split the passage, or lower llm.max_tokens"
        )
    if 400 <= status < 500 and status not in (408, 409, 425, 429):
        return _permanent(f"{asked.url} refused the prompt ({status}): {said}")
    why = f"{asked.url} answered {status}, tried {asked.tries} times: {said}"
    return ChatReply("", "error", error=why)


def _all_alike(error: Any, asked: Asked, said: str, answered_before: bool) -> HippoRAGError | None:
    """The error to raise if every other prompt would meet it too."""
    status, code, param = error.status_code, str(error.code or ""), str(error.param or "")
    key = f"the key in {asked.key_env}" if asked.key_env else "the request without a key"
    if status == 401 or (status == 403 and not answered_before):
        return ConfigError(
            f"{asked.url} refuses {key} ({status}): {said}; check the key, that it belongs to this endpoint, "
            f"and that it may use the model {asked.model}"
        )
    if status == 404 and not answered_before:
        what = "llm.model to the deployment's name" if asked.azure else "llm.model"
        return ConfigError(
            f"{asked.url} knows no model {asked.model!r}, or nothing is at that address (404): {said}; set "
            f"{what}, or llm.base_url, which usually ends with /v1"
        )
    if status == 402 or "insufficient_quota" in (code, str(error.type or "")):
        return BackendError(f"{asked.url}: the account of {key} has no credit left ({status}): {said}")
    if status not in (400, 422):
        return None
    if asked.formatted and (_FORMAT.search(param) or _FORMAT.search(_said(error))):
        return ConfigError(
            f"{asked.url} takes no such structured output ({status}): {said}; set llm.structured=none, and "
            "the prompt alone asks for JSON, or llm.structured=json_object"
        )
    if param.split(".")[0] in _SETTINGS:
        return ConfigError(
            f"{asked.url} takes no such {param} for {asked.model} ({status}): {said}; change that setting, "
            "or set it to null to leave it out"
        )
    return None


def _said(error: Any) -> str:
    """The server's own message, with the numbers that llama.cpp puts beside it."""
    body = error.body if isinstance(error.body, dict) else {}
    message = body.get("message")
    said = message if isinstance(message, str) and message else error.message
    sent, most = body.get("n_prompt_tokens"), body.get("n_ctx")
    return said if sent is None or most is None else f"{said} (prompt {sent} tokens, context {most})"


def _cause(error: Any, asked: Asked) -> str:
    cause = error.__cause__ or error
    return asked.clean(f"{type(cause).__name__}: {cause}".rstrip(": "))


def _permanent(why: str) -> ChatReply:
    return ChatReply("", "error", error=why, permanent=True)
