"""The phrases and facts that extractions state: built from all of them, or from the last vocabulary."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from operator import attrgetter
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from hipporag_torch.graph_construction import Statements
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Extraction, Triple

Entry = TypeVar("Entry")
# A tuple of strings orders as the triple does, and is compared and hashed several times faster.
_fact_key: Callable[[Triple], tuple[str, str, str]] = attrgetter("subject", "predicate", "object")


@dataclass(frozen=True)
class Stated:
    """What one extraction states: a fact for each distinct wording, and how many triples have no key."""

    facts: tuple[Triple, ...]
    without_key: int

    @staticmethod
    def of(extraction: Extraction, text: TextOptions) -> "Stated":
        facts = [text.fact(triple) for triple in extraction.triples]
        worded = dict(zip(extraction.triples, facts, strict=True))
        return Stated(
            tuple(fact for fact in worded.values() if fact is not None), sum(fact is None for fact in facts)
        )


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The phrases and facts that a set of extractions states, and who states what.

    Rows are canonical: phrases ascend by text, facts by (subject, predicate, object), statements by
    passage and fact. So the same passages give the same rows, whatever their history.
    """

    phrases: tuple[str, ...]
    facts: tuple[Triple, ...]
    statements: Statements

    @staticmethod
    def of(extractions: Sequence[Extraction], text: TextOptions) -> "Vocabulary":
        """Normalise every triple of `extractions`, one per passage in the order of the passages.

        A triple that one passage repeats word for word counts once; one without a key, not at all.
        """
        stated = [
            (passage_idx, fact)
            for passage_idx, extraction in enumerate(extractions)
            for fact in Stated.of(extraction, text).facts
        ]
        facts = sorted({fact for _, fact in stated})
        phrases = sorted({end for fact in facts for end in (fact.subject, fact.object)})
        fact_row = {fact: row for row, fact in enumerate(facts)}
        phrase_row = {phrase: row for row, phrase in enumerate(phrases)}
        rows = sorted((passage_idx, fact_row[fact]) for passage_idx, fact in stated)
        passage_idx, fact_idx = torch.tensor(rows, dtype=torch.int64).reshape(-1, 2).unbind(1)
        ends = [(phrase_row[fact.subject], phrase_row[fact.object]) for fact in facts]
        end_idx = torch.tensor(ends, dtype=torch.int64).reshape(-1, 2)[fact_idx]
        statements = Statements(passage_idx, fact_idx, end_idx[:, 0], end_idx[:, 1])
        return Vocabulary(tuple(phrases), tuple(facts), statements)

    @cached_property
    def fact_ends(self) -> Int64[Tensor, "facts 2"]:
        """The phrase rows of each fact's subject and object. Every fact is stated, so statements tell."""
        ends = torch.empty(len(self.facts), 2, dtype=torch.int64)
        ends[self.statements.fact_idx, 0] = self.statements.subject_idx
        ends[self.statements.fact_idx, 1] = self.statements.object_idx
        return ends

    def changed(
        self, passage_idx: Int64[Tensor, " old_passages"], stated: Mapping[int, Stated]
    ) -> "VocabularyChange":
        """What `of` gives for other passages, at the cost of those that differ.

        Old passage i is row `passage_idx[i]` now, in the same order; -1 takes back what it states.
        `stated` holds what others state, by their row.
        """
        row = passage_idx[self.statements.passage_idx]
        kept_fact = self.statements.fact_idx[row >= 0]
        by_key = {_fact_key(fact): fact for said in stated.values() for fact in said.facts}
        keys = sorted(by_key)
        alive = torch.bincount(kept_fact, minlength=len(self.facts)) > 0
        facts = _merge(self.facts, alive, keys, [by_key[key] for key in keys], _fact_key)
        come = [keys[i] for i in facts.come]
        ends = sorted({end for subject, _, object in come for end in (subject, object)})
        lives = torch.zeros(len(self.phrases), dtype=torch.bool)
        lives[self.fact_ends[facts.old_idx >= 0].flatten()] = True
        phrases = _merge(self.phrases, lives, ends, ends, None)

        fact_ends = torch.empty(len(facts.entries), 2, dtype=torch.int64)
        fact_ends[facts.old_idx[facts.old_idx >= 0]] = phrases.old_idx[self.fact_ends[facts.old_idx >= 0]]
        phrase_row = dict(zip(ends, phrases.key_idx.tolist(), strict=True))
        rows = [(phrase_row[subject], phrase_row[object]) for subject, _, object in come]
        fact_ends[facts.key_idx[facts.come]] = torch.tensor(rows, dtype=torch.int64).reshape(-1, 2)

        fact_row = dict(zip(keys, facts.key_idx.tolist(), strict=True))
        said = [(p, fact_row[_fact_key(fact)]) for p in stated for fact in stated[p].facts]
        new_passage, new_fact = torch.tensor(said, dtype=torch.int64).reshape(-1, 2).unbind(1)
        passage = torch.cat([row[row >= 0], new_passage])
        fact = torch.cat([facts.old_idx[kept_fact], new_fact])
        order = torch.argsort(passage * len(facts.entries) + fact)
        passage, fact = passage[order], fact[order]
        statements = Statements(passage, fact, fact_ends[fact, 0], fact_ends[fact, 1])
        vocabulary = Vocabulary(phrases.entries, facts.entries, statements)
        return VocabularyChange(vocabulary, phrases.old_idx, facts.old_idx)


@dataclass(frozen=True, eq=False)
class VocabularyChange:
    """A vocabulary, and the row in it of each phrase and fact of the one before; -1 if nobody states it."""

    vocabulary: Vocabulary
    phrase_idx: Int64[Tensor, " old_phrases"]
    fact_idx: Int64[Tensor, " old_facts"]


@dataclass(frozen=True, eq=False)
class _Merge:
    """Entries in order; the rows of the old entries (or -1) and of all keys; `come` numbers the new keys."""

    entries: tuple[Any, ...]
    old_idx: Int64[Tensor, " old"]
    key_idx: Int64[Tensor, " keys"]
    come: list[int]


def _merge(
    old: Sequence[Entry],
    alive: Bool[Tensor, " old"],
    keys: Sequence[Any],
    entries: Sequence[Entry],
    key: Callable[[Entry], Any] | None,
) -> _Merge:
    """What is `alive` of `old`, and `entries` with their `keys`, some of which may be in `old` already.

    Both ascend by `key` without repetitions. Old entries are neither hashed nor compared, but for the few
    that bisection meets.
    """
    at, is_known = _located(old, keys, key)
    alive = alive.clone()
    alive[at[is_known]] = True
    # Of the entries that stay, how many stand before each old place.
    before = torch.cat([torch.zeros(1, dtype=torch.int64), alive.cumsum(0)])
    insert_at = before[at[~is_known]]
    shift = torch.searchsorted(insert_at, before[:-1], right=True)
    old_idx = torch.where(alive, before[:-1] + shift, -1)
    key_idx = torch.empty(len(keys), dtype=torch.int64)
    key_idx[is_known] = old_idx[at[is_known]]
    key_idx[~is_known] = insert_at + torch.arange(len(insert_at))
    come = (~is_known).nonzero()[:, 0].tolist()
    staying = old if bool(alive.all()) else list(compress(old, alive.tolist()))
    merged = tuple(_inserted(staying, insert_at.tolist(), [entries[i] for i in come]))
    return _Merge(merged, old_idx, key_idx, come)


def _located(
    old: Sequence[Entry], keys: Sequence[Any], key: Callable[[Entry], Any] | None
) -> tuple[Int64[Tensor, " keys"], Bool[Tensor, " keys"]]:
    """The first place in `old` that is not below each key, and whether the key stands there."""
    at: list[int] = []
    is_known: list[bool] = []
    place = 0
    for wanted in keys:
        place = bisect_left(old, wanted, lo=place, key=key)  # pyright: ignore[reportCallIssue, reportArgumentType]
        at.append(place)
        is_known.append(place < len(old) and (key(old[place]) if key else old[place]) == wanted)
    return torch.tensor(at, dtype=torch.int64), torch.tensor(is_known, dtype=torch.bool)


def _inserted(staying: Sequence[Entry], at: Sequence[int], new: Sequence[Entry]) -> list[Entry]:
    """`staying` with new[i] before its place at[i]; `at` ascends."""
    result: list[Entry] = []
    start = 0
    for place, entry in zip(at, new, strict=True):
        result += staying[start:place]
        result.append(entry)
        start = place
    result += staying[start:]
    return result
