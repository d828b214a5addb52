"""The seams. Anything that fits one of these protocols can be injected; conf/ names those we ship."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.types import (
    Answer,
    Chunk,
    Document,
    Extraction,
    FilterDecision,
    Passage,
    Progress,
    Ranking,
    Role,
    Triple,
    no_progress,
)

__all__ = [
    "Chunker",
    "Embedder",
    "EmbedderIdentity",
    "Extractor",
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

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        """One extraction per passage, in order."""
        ...


class FactFilter(Protocol):
    """Recognition memory: which of the facts shown help to answer each question."""

    def select(
        self, questions: Sequence[str], candidates: Sequence[Sequence[Triple]]
    ) -> list[FilterDecision]:
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
