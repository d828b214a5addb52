"""What a write would do, and what decides it: a confirmation token holds for that alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hipporag_torch.folders import FolderPlan
from hipporag_torch.reports import ChangePlan
from hipporag_torch.types import Document


@dataclass(frozen=True)
class Planned:
    """What a change would do, on which generation, and what would extract for it.

    `confirm` is the token to do it with, if it needs one.
    """

    change: ChangePlan
    producer: str
    generation: int
    confirm: str | None


@dataclass(frozen=True)
class PlannedFolder:
    """What a sync of a folder would do; see `Planned`."""

    plan: FolderPlan
    producer: str
    generation: int
    confirm: str | None


def extractions_of(change: ChangePlan) -> int:
    """The passages that would be extracted."""
    return change.passages_new + change.passages_retried


def cost_of(calls: int) -> str:
    """What extracting costs, for people."""
    return f"{calls:,} calls of a language model" if calls else "no call of a language model"


def index_arguments(documents: Sequence[Document]) -> list[Any]:
    """What decides what indexing these documents does, JSON-like."""
    return ["index", _told(documents)]


def update_arguments(source_id: str, documents: Sequence[Document]) -> list[Any]:
    """What decides what replacing a source does, JSON-like."""
    return ["update", source_id, _told(documents)]


def folder_arguments(plan: FolderPlan) -> list[Any]:
    """What decides what a sync does, JSON-like: the contents of the files are in the plan's digest."""
    return ["index_folder", plan.digest]


def _told(documents: Sequence[Document]) -> list[Any]:
    return [[document.text, document.source_id, dict(document.metadata)] for document in documents]
