"""What the state of a durable index is, and what its upkeep did. All frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hipporag_torch.graph_construction import AnyGraphOptions
from hipporag_torch.protocols import EmbedderIdentity
from hipporag_torch.reports import FailedPassage
from hipporag_torch.text import TextOptions


@dataclass(frozen=True)
class Counts:
    """How much an index holds. `statements` are facts as passages state them, `edges` undirected ones."""

    passages: int
    sources: int
    phrases: int
    facts: int
    statements: int
    synonyms: int
    edges: int


@dataclass(frozen=True)
class KeptEmbedder:
    """An embedder that an index keeps vectors of, up to `generation`; the main one is taken by default."""

    identity: EmbedderIdentity
    generation: int
    vector_type: str
    main: bool


@dataclass(frozen=True)
class DiskStats:
    """What stands in an index directory.

    `interrupted` says what a writer that was killed had in hand: the index is as it was before that.
    `staged_extractions` and `spare_vectors` of it are not paid for again. `removed` counts what deletions
    left until `compact`.
    """

    path: str
    generation: int
    last_action: str
    bytes: int
    embedders: tuple[KeptEmbedder, ...]
    interrupted: str
    staged_extractions: int
    spare_vectors: int
    removed: Mapping[str, int]


@dataclass(frozen=True)
class IndexStats:
    """The state of a memory: what it holds, what it was built with, what failed, and its disk form if any."""

    counts: Counts
    embedder: EmbedderIdentity
    text: TextOptions
    graph_options: AnyGraphOptions
    producers: Mapping[str, int]
    failed: tuple[FailedPassage, ...]
    without_facts: int
    disk: DiskStats | None = None


@dataclass(frozen=True)
class Finding:
    """One thing that `check` found. `ids` name the rows, passages or files that it concerns."""

    part: str
    problem: str
    way_out: str
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckReport:
    """What `check` looked at, and what it found; nothing found means that the index is whole."""

    checked: Mapping[str, int]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class RepairReport:
    """What `repair` mended, and what it could not, which `check` would find again.

    `quarantined` are passages whose extraction was lost: they are indexed dense-only, and `retry_failed`
    extracts them again. `embedded` counts the texts whose vectors had to be made again.
    """

    mended: tuple[Finding, ...]
    unmended: tuple[Finding, ...]
    quarantined: tuple[str, ...] = ()
    embedded: int = 0


@dataclass(frozen=True)
class CompactReport:
    """What `compact` dropped, by kind, and the size of the directory before and after.

    `not_erased` lists what removed text may still be found in, such as a cache that could not be written.
    """

    bytes_before: int
    bytes_after: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    not_erased: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReembedReport:
    """What `reembed` did: how many texts of each kind the index has, and how many had to be embedded."""

    embedder: EmbedderIdentity
    texts: Mapping[str, int]
    embedded: int
    seconds: float = 0.0


@dataclass(frozen=True)
class RebuildReport:
    """What `rebuild_graph` did: edges before and after."""

    edges_before: int
    edges_after: int
    seconds: float = 0.0
