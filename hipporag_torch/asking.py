"""What everything that asks a chat model does before and after it."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from hipporag_torch.chat import ChatReply, Prompt
from hipporag_torch.errors import ConfigError
from hipporag_torch.prompts import PromptTemplate, load_prompt
from hipporag_torch.protocols import ChatModel
from hipporag_torch.replies.reasoning import TAG
from hipporag_torch.types import Passage

_TAG = re.compile(TAG, re.IGNORECASE)


@dataclass(frozen=True)
class Fitted:
    """A prompt with the first `num_passages` passages; None, with the reason, if not even one fits."""

    prompt: Prompt | None
    num_passages: int
    reason: str = ""


def load_prompt_for(name_or_path: str | Path, fields: Collection[str], option: str) -> PromptTemplate:
    """The prompt that `option` names. Raises `ConfigError` unless it has exactly these fields."""
    template = load_prompt(name_or_path)
    if template.fields != set(fields):
        raise ConfigError(
            f"{option}={name_or_path} has the fields {', '.join(sorted(template.fields)) or 'none'}; "
            f"expected {', '.join(sorted(fields))}"
        )
    return template


def require_max_tokens(max_tokens: int, group: str) -> None:
    """Raise `ConfigError` unless a reply may have a token."""
    if max_tokens < 1:
        raise ConfigError(f"{group}.max_tokens must be at least 1, got {max_tokens}")


def failure(reply: ChatReply) -> str:
    """Why there is nothing to read in a reply, or the empty string."""
    if reply.finish == "error":
        return reply.error or "the model gave no reply"
    if reply.finish == "refused":
        return reply.error or "the reply was refused by a content filter"
    return ""


def spoken(text: str) -> str:
    """The text without its reasoning: closed blocks, one whose start is missing, one that never ends."""
    kept: list[str] = []
    start: int | None = 0
    for tag in _TAG.finditer(text):
        if not tag["end"]:
            if start is not None:
                kept.append(text[start : tag.start()])
            start = None
            continue
        if start is not None:
            # It closes what was not opened: all before was thought.
            kept.clear()
        start = tag.end()
    if start is not None:
        kept.append(text[start:])
    return " ".join(kept).strip()


def passages_text(passages: Sequence[Passage]) -> str:
    """The passages as prompts show them: as they are, with a blank line between."""
    return "\n\n".join(passage.text for passage in passages)


def fit_passages(
    llm: ChatModel,
    prompt_of: Callable[[Sequence[Passage]], Prompt],
    passages: Sequence[Passage],
    max_tokens: int,
) -> Fitted:
    """The prompt with as many passages as fit the model's context beside a reply of `max_tokens`.

    Passages are left out whole, from the end. Without any passages the prompt has to fit as it is.
    """
    if llm.context_tokens is None:
        return Fitted(prompt_of(passages), len(passages))
    room = llm.context_tokens - max_tokens
    tokens = 0
    for count in range(len(passages), min(1, len(passages)) - 1, -1):
        prompt = prompt_of(passages[:count])
        tokens = llm.count_tokens(prompt)
        if tokens <= room:
            return Fitted(prompt, count)
    shown = f"the passage {passages[0].id}" if passages else "no passage"
    return Fitted(
        None,
        0,
        f"a prompt with {shown} has {tokens} tokens, and {max_tokens} are kept for the reply, but the "
        f"model's context has {llm.context_tokens}; use smaller passages, a smaller max_tokens, or a model "
        "with a larger context",
    )
