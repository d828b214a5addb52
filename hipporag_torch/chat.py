"""What travels between the parts and a chat model. All frozen."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Literal

ChatRole = Literal["system", "user", "assistant"]

Finish = Literal["stop", "length", "refused", "error"]
"""How a reply ended: by itself, cut at the token limit, refused by a content filter, or not at all."""


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: ChatRole
    text: str


Prompt = tuple[Message, ...]
"""A conversation that a model is to continue."""


@dataclass(frozen=True)
class Usage:
    """What models were asked: `calls` and tokens that were paid for, and apart from these, what a cache gave.

    Adds up: `sum(usages, Usage())`.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_calls: int = 0
    cached_prompt_tokens: int = 0
    cached_completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage)))

    def __sub__(self, other: "Usage") -> "Usage":
        """What came since `other`, an earlier count."""
        return Usage(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(Usage)))


@dataclass(frozen=True)
class ChatReply:
    """A model's answer to one prompt.

    Half of a surrogate pair, which models do write and no file can hold, becomes U+FFFD.
    A reply that could not be had has `finish` "error", an empty text and an `error` that says why;
    `permanent` says that asking again would fail in the same way (a prompt longer than the context, a
    refusal, a wrong key). One that came from a cache counts in `usage` as cached.
    """

    text: str
    finish: Finish = "stop"
    usage: Usage = field(default_factory=Usage)
    error: str = ""
    permanent: bool = False

    def __post_init__(self) -> None:
        if not self.text.isascii():
            whole = self.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            object.__setattr__(self, "text", whole)


Accept = Callable[[int, ChatReply], bool]
"""`accept(number, reply)`: called once with each reply, as soon as it is there, in no fixed order. Whether it
could be used: a cache keeps only such replies."""


@dataclass(frozen=True)
class ChatIdentity:
    """What decides a model's replies; with the messages and the schema it is the key of a cached one.

    `endpoint` is the service's address or the engine's name; `revision` the resolved revision or digest of
    local weights, as far as it is known; `settings` are the decoding settings, as sorted (name, value).
    """

    endpoint: str
    model: str
    revision: str = ""
    settings: tuple[tuple[str, str], ...] = ()


def accept_all(number: int, reply: ChatReply) -> bool:
    """Takes any reply that is one."""
    return reply.finish != "error"
