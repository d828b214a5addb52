"""What a change had extracted, and how it stands in reports."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from hipporag_torch.chat import Usage
from hipporag_torch.errors import BackendError, BudgetError, ConfigError, ExtractionError
from hipporag_torch.protocols import CountsUsage, EstimatesUsage, Extractor
from hipporag_torch.reports import FailedPassage
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Extraction, OnError, Passage, Progress
from hipporag_torch.vocabulary import Stated


@dataclass(frozen=True, eq=False)
class Extracted:
    """New extractions, by passage id, ascending; `usage` is what they took that was not paid for before.

    A budget that was spent is `stopped`, the reason, and `left` lists the passages that it did not reach.
    """

    passages: Mapping[str, Passage]
    extractions: Mapping[str, Extraction]
    text: TextOptions
    usage: Usage = field(default_factory=Usage)
    left: tuple[str, ...] = ()
    stopped: str = ""

    @staticmethod
    def nothing(text: TextOptions) -> "Extracted":
        return Extracted({}, {}, text)

    @cached_property
    def stated(self) -> Mapping[str, Stated]:
        """What each extraction states, normalised."""
        return {key: Stated.of(extraction, self.text) for key, extraction in self.extractions.items()}

    @cached_property
    def failed(self) -> tuple[FailedPassage, ...]:
        return tuple(
            FailedPassage(
                passage_id=key,
                source_ids=tuple(source.source_id for source in self.passages[key].sources),
                reason=extraction.reason,
                reply=extraction.reply,
                permanent=extraction.permanent,
            )
            for key, extraction in self.extractions.items()
            if extraction.status == "failed"
        )

    @property
    def without_facts(self) -> tuple[str, ...]:
        """Passages that state nothing, though their extraction did not fail."""
        return tuple(
            key
            for key, extraction in self.extractions.items()
            if extraction.status != "failed" and not self.stated[key].statements
        )

    @property
    def dropped(self) -> dict[str, int]:
        """Malformed entries by kind, with what normalisation leaves without a key."""
        total = Counter[str]()
        for key, extraction in self.extractions.items():
            total.update(extraction.dropped)
            total["empty_key"] += self.stated[key].without_key
        return dict(sorted((+total).items()))

    def replacing(self, failed: Mapping[str, bool]) -> "Extracted":
        """Without the failures of passages that have a good extraction: those that are not in `failed`."""
        kept = {k: e for k, e in self.extractions.items() if e.status != "failed" or k in failed}
        return self if len(kept) == len(self.extractions) else replace(self, extractions=kept)


def extract(
    extractor: Extractor,
    passages: Sequence[Passage],
    text: TextOptions,
    *,
    on_error: OnError,
    progress: Progress,
    whole: bool,
) -> Extracted:
    """Extract `passages`, which ascend by id.

    A budget that is spent on the way leaves those that it did not reach for later, unless `whole` or
    `on_error` "fail" asks for all or nothing, or none was finished: then its `BudgetError` comes through.
    Raises `BackendError` if the extractor skips one, and `ExtractionError` with all failures, after the last
    passage, if there are some and `on_error` is "fail".
    """
    if on_error not in ("quarantine", "fail"):
        raise ConfigError(f"on_error must be quarantine or fail, got {on_error!r}")
    before = extractor.usage if isinstance(extractor, CountsUsage) else Usage()
    left: tuple[str, ...] = ()
    stopped = ""
    try:
        made = extractor.extract(passages, progress) if passages else []
    except BudgetError as error:
        if whole or on_error == "fail" or not error.finished:
            raise
        left, stopped = tuple(p.id for p in passages if p.id not in error.finished), str(error)
        passages = [passage for passage in passages if passage.id in error.finished]
        made = [error.finished[passage.id] for passage in passages]
    if len(made) != len(passages):
        raise BackendError(
            f"the extractor gave {len(made)} extractions for {len(passages)} passages; "
            "expected one for each, in order"
        )
    by_id = {passage.id: passage for passage in passages}
    if isinstance(extractor, CountsUsage):
        usage = extractor.usage - before
    else:
        usage = sum((extraction.usage for extraction in made), Usage())
    extracted = Extracted(by_id, dict(zip(by_id, made, strict=True)), text, usage, left, stopped)
    if extracted.failed and on_error == "fail":
        first = extracted.failed[0]
        raise ExtractionError(
            f"{len(extracted.failed)} of {len(passages)} passages could not be extracted, the first is "
            f"{first.passage_id} of {', '.join(first.source_ids)}: {first.reason}; nothing was changed: "
            "heal what failed, or let on_error=quarantine find those passages by their vectors alone",
            extracted.failed,
        )
    return extracted


def estimated(extractor: Extractor, passages: Sequence[Passage]) -> Usage:
    """What extracting would ask a language model at most; nothing, where the extractor cannot tell."""
    return extractor.estimate(passages) if isinstance(extractor, EstimatesUsage) else Usage()
