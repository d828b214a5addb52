"""From what an OpenAI-compatible endpoint answered to a reply."""

from dataclasses import dataclass
from typing import Any

from hipporag_torch.chat import ChatReply, Finish, Prompt, Usage
from hipporag_torch.llms.estimate import estimated_text_tokens, estimated_tokens


@dataclass(frozen=True)
class Answered:
    """A reply, and whether its token counts are an estimate because the endpoint gave none."""

    reply: ChatReply
    estimated: bool


def answered(completion: Any, prompt: Prompt) -> Answered:
    """The first choice of a `ChatCompletion`, whose fields may be of any type: the SDK checks none."""
    message, finish = _first_choice(completion)
    text = _text(getattr(message, "content", None))
    refusal = _text(getattr(message, "refusal", None))
    usage, estimated = usage_of(getattr(completion, "usage", None), prompt, text + refusal)
    return Answered(reply_of(text, refusal, finish, usage, nothing=message is None), estimated)


def reply_of(
    text: str, refusal: str, finish: str | None, usage: Usage, *, nothing: bool = False
) -> ChatReply:
    """A reply from its parts; `nothing` says that the endpoint sent no choice at all."""
    if refusal or finish == "content_filter":
        why = f"refused: {refusal}" if refusal else "refused by the endpoint's content filter"
        return ChatReply("", "refused", usage, why, permanent=True)
    if nothing:
        return ChatReply("", "error", usage, "the endpoint's reply holds no choices; ask again")
    if not text and finish != "length":
        return ChatReply("", "error", usage, "the endpoint's reply is empty; ask again")
    ended: Finish = "length" if finish == "length" else "stop"
    return ChatReply(text, ended, usage)


def usage_of(given: Any, prompt: Prompt, text: str) -> tuple[Usage, bool]:
    """The tokens that the endpoint counted, or an estimate and True."""
    sent, got = _count(given, "prompt_tokens"), _count(given, "completion_tokens")
    if sent is not None and got is not None:
        return Usage(calls=1, prompt_tokens=sent, completion_tokens=got), False
    return Usage(1, estimated_tokens(prompt), estimated_text_tokens(text)), True


def _first_choice(completion: Any) -> tuple[Any, str | None]:
    choices = getattr(completion, "choices", None)
    if not isinstance(choices, list) or not choices:
        return None, None
    return getattr(choices[0], "message", None), getattr(choices[0], "finish_reason", None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(given: Any, name: str) -> int | None:
    value = getattr(given, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
