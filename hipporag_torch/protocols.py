"""The seams. Anything that fits one of these protocols can be injected; conf/ names those we ship."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.chat import Accept, ChatIdentity, ChatReply, Prompt, Usage, accept_all
from hipporag_torch.types import (
    Answer,
    Chunk,
    Document,
    Extraction,
    Fact,
    FilterDecision,
    Passage,
    Progress,
    Ranking,
    Role,
    no_progress,
)

__all__ = [
    "ChatModel",
    "Chunker",
    "CountsUsage",
    "Embedder",
    "EmbedderIdentity",
    "EstimatesUsage",
    "Extractor",
    "ExtractsEach",
    "FactFilter",
    "Progress",
    "Reader",
    "Reads",
    "Retriever",
    "no_progress",
]


@dataclass(frozen=True)
class EmbedderIdentity:
    """What decides an embedder's vectors. Two embedders with equal identities are interchangeable.

    `weights` is a digest of local weights, or the resolved revision of a hub model.
    `instructions` maps roles to the text put before every input of that role.
    """

    name: str
    weights: str
    dim: int
    pooling: str
    max_tokens: int | None = None
    instructions: tuple[tuple[Role, str], ...] = field(default=())


Reads = Literal["texts", "vectors", "graph"]
"""What a retriever needs of an index; each includes those before it."""


class Embedder(Protocol):
    """Texts → unit vectors (or the zero vector, for a text in which it finds nothing)."""

    @property
    def identity(self) -> EmbedderIdentity: ...

    def instruction(self, role: Role) -> str:
        """What is put before a text of this role; equal instructions mean equal vectors."""
        ...

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        """One row per text, in order, on the CPU. An empty sequence gives a (0, dim) tensor."""
        ...

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        """Whether each text is longer than what the model reads, so that its end is not embedded."""
        ...


class Chunker(Protocol):
    """Documents → the passages that they are cut into."""

    def chunk(self, document: Document) -> list[Chunk]:
        """At least one piece, in reading order, each with a text that is not blank."""
        ...


class Extractor(Protocol):
    """Passages → entities and triples. One bad passage never sinks a batch: its status says so.

    `producer` names what decides its extractions (a model, its revision, prompts, settings, or a file's
    digest): two extractors with the same producer are interchangeable. `calls_per_passage` is how often
    it asks a language model about one passage; 0 if it needs none.
    """

    @property
    def producer(self) -> str: ...

    @property
    def calls_per_passage(self) -> int: ...

    def extract(
        self,
        passages: Sequence[Passage],
        progress: Progress = no_progress,
    ) -> list[Extraction]:
        """One extraction per passage, in order."""
        ...


@runtime_checkable
class ExtractsEach(Protocol):
    """An extractor that hands over each passage's extraction as soon as it is finished."""

    def extract_each(
        self,
        passages: Sequence[Passage],
        keep: Callable[[Passage, Extraction], None],
        progress: Progress = no_progress,
    ) -> None:
        """Calls `keep` once for each passage, in no fixed order; an error comes after what was finished."""
        ...


@runtime_checkable
class EstimatesUsage(Protocol):
    """An extractor that can say what it would ask a language model, without asking it."""

    def estimate(self, passages: Sequence[Passage]) -> Usage:
        """Calls, tokens of their prompts, and the most tokens that the replies may have."""
        ...


@runtime_checkable
class CountsUsage(Protocol):
    """An extractor that counts what language models were asked through it; it only grows."""

    @property
    def usage(self) -> Usage: ...


class ChatModel(Protocol):
    """Prompts → replies, many at once. One prompt that fails never sinks a batch: its reply says so."""

    @property
    def identity(self) -> ChatIdentity: ...

    @property
    def context_tokens(self) -> int | None:
        """The most tokens that prompt and reply may have together, if that is known."""
        ...

    def count_tokens(self, prompt: Prompt) -> int:
        """How many tokens a prompt has: exactly where the tokenizer is at hand, else a careful estimate."""
        ...

    def reply(
        self,
        prompts: Sequence[Prompt],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        accept: Accept = accept_all,
        progress: Progress = no_progress,
    ) -> list[ChatReply]:
        """One reply per prompt, in order.

        schema: a JSON schema that the reply is to fit, for backends that can demand it; the others send
        the prompt alone. max_tokens: the most tokens of a reply, the model's own setting by default.
        Raises `BackendError` or `ConfigError` only for what concerns all prompts alike: no key, a wrong
        key, an unknown model, an endpoint that is down from the start; and `BudgetError` when the next
        call would exceed a budget.
        """
        ...

    def stream(
        self, prompt: Prompt, show: Callable[[str], None], *, max_tokens: int | None = None
    ) -> ChatReply:
        """The reply to one prompt; `show` gets its pieces as they come, all at once if the backend can't."""
        ...


class FactFilter(Protocol):
    """Recognition memory: which of the facts shown help to answer each question."""

    def select(self, questions: Sequence[str], candidates: Sequence[Sequence[Fact]]) -> list[FilterDecision]:
        """One decision per question, in order."""
        ...


class Reader(Protocol):
    """Rankings → answers."""

    def read(self, rankings: Sequence[Ranking]) -> list[Answer]:
        """One answer per ranking, to its question, in order; an empty text where there is nothing to read."""
        ...


class Retriever(Protocol):
    """Questions → ranked passages.

    `reads` is the most that it needs of an index: its texts, its passage vectors, or its graph.
    """

    reads: ClassVar[Reads]

    def retrieve(self, questions: Sequence[str], *, top_k: int, trace: bool = False) -> list[Ranking]:
        """One ranking per question, in order, with at most `top_k` passages.

        Raises `InputError` for an empty question and for `top_k` < 1.
        """
        ...
