"""What a change of an index did, or would do. All frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hipporag_torch.chat import Usage


@dataclass(frozen=True)
class FailedPassage:
    """A passage whose extraction failed; it is in the index, but only dense retrieval finds it.

    `reply` is what the model said, if anything; `permanent` failures are retried on request only.
    """

    passage_id: str
    source_ids: tuple[str, ...]
    reason: str
    reply: str = ""
    permanent: bool = False


@dataclass(frozen=True)
class SourceReport:
    """What one source brought: passages that are new, that were known already, and that failed."""

    passages_added: int = 0
    passages_known: int = 0
    failed: int = 0


@dataclass(frozen=True)
class AddReport:
    """What one `add` did. `seconds` is per stage; `dropped` counts malformed entries by kind.

    Of the passages added, `truncated` are longer than the embedder reads, and `without_facts` state
    nothing that the extractor found: they are found by their vectors alone. `failed` lists those that
    this call tried to extract; one whose failure is permanent is not tried again. `sources` has an entry
    for each source that the documents name. `usage` is what language models were asked for it: extractions
    that an interrupted call had paid for are not in it. Where a budget was spent, `stopped` says so and
    `left` lists the passages that were not reached and are not in the index: adding them again goes on.
    """

    documents: int
    passages_added: int
    passages_known: int
    phrases_added: int
    facts_added: int
    failed: tuple[FailedPassage, ...] = ()
    truncated: tuple[str, ...] = ()
    without_facts: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, SourceReport] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    left: tuple[str, ...] = ()
    stopped: str = ""


@dataclass(frozen=True)
class RemoveReport:
    """What one `remove` did, or would do; `not_found` lists what was asked for and is not in the index.

    `passages_kept` were named by a source that went, but another source still holds them.
    """

    passages_removed: tuple[str, ...]
    passages_kept: tuple[str, ...]
    phrases_removed: int
    facts_removed: int
    not_found: tuple[str, ...] = ()


@dataclass(frozen=True)
class UpdateReport:
    """What one `update` did: `added` is what its documents brought, `removed` what the source held before
    and holds no more. A passage that the source keeps is in neither, except as known."""

    source_id: str
    added: AddReport
    removed: RemoveReport


@dataclass(frozen=True)
class ExtractReport:
    """What one `retry_failed` or `reextract` did: `passages` are those that it tried.

    `failed` are those of them that failed, perhaps again. A passage that had a good extraction before
    keeps it when the new one fails. `usage` is what language models were asked by this call. Where a budget
    was spent, `stopped` says so and `left` lists the passages that it did not reach.
    """

    passages: tuple[str, ...]
    phrases_added: int
    phrases_removed: int
    facts_added: int
    facts_removed: int
    failed: tuple[FailedPassage, ...] = ()
    without_facts: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    left: tuple[str, ...] = ()
    stopped: str = ""


@dataclass(frozen=True)
class ChangePlan:
    """What a change would do, worked out without calling a model and without writing anything.

    `passages_known` are in the index already, those to be extracted again among them; of these
    `passages_retried` failed before. `extractor_calls` is what all extractions cost together, the new
    passages' included; `usage` is the estimate of that in tokens, as `EstimatesUsage` has it, if the
    extractor can tell. What an interrupted change has staged, or a cache holds, is not subtracted.
    `passages_removed` are ids.
    """

    documents: int = 0
    passages_new: int = 0
    passages_known: int = 0
    passages_retried: int = 0
    passages_removed: tuple[str, ...] = ()
    extractor_calls: int = 0
    usage: Usage = field(default_factory=Usage)
