"""The phrases and facts that extractions state: built from all of them, or from the last vocabulary."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from hipporag_torch.graph_construction import Statements
from hipporag_torch.lexicon import Lexicon
from hipporag_torch.names import Names
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Extraction, Fact, Sentence, Triple

Entry = TypeVar("Entry")
# A tuple of strings is compared and hashed several times faster than the fact.
_parts: Callable[[Fact], tuple[str, ...]] = attrgetter("parts")


class Statement(NamedTuple):
    """A fact as one passage words it, with the keys of the phrases at its ends.

    A sentence has a statement for each of its names, with that name at both ends. `subject_named` and
    `object_named` say whether the end is written as a name.
    """

    fact: Fact
    subject: str
    object: str
    subject_named: bool
    object_named: bool


@dataclass(frozen=True)
class Stated:
    """What one extraction states, and how many of its triples and names have no key.

    A triple that is repeated word for word counts once; a sentence that names nothing states nothing.
    """

    statements: tuple[Statement, ...]
    without_key: int

    @staticmethod
    def of(extraction: Extraction, text: TextOptions) -> "Stated":
        names = Names.of(extraction, text)
        statements: dict[Triple, Statement] = {}
        without_key = 0
        for triple in extraction.triples:
            fact = text.fact(triple)
            if fact is None:
                without_key += 1
                continue
            subject_named = names.has(triple.subject, fact.subject)
            object_named = names.has(triple.object, fact.object)
            statements[triple] = Statement(fact, fact.subject, fact.object, subject_named, object_named)
        told: dict[Statement, None] = {}
        for sentence, named in extraction.sentences:
            fact = text.sentence(sentence)
            for name in named:
                key = text.phrase(name)
                if not key:
                    without_key += 1
                    continue
                is_name = names.has(name, key)
                told[Statement(fact, key, key, is_name, is_name)] = None
        return Stated((*statements.values(), *told), without_key)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The phrases and facts that a set of extractions states, who states what, and all as tokens.

    Rows are canonical: phrases ascend by text, facts by their parts, statements by passage, fact and ends.
    So the same passages give the same rows, whatever their history.
    """

    phrases: tuple[str, ...]
    facts: tuple[Fact, ...]
    statements: Statements
    lexicon: Lexicon

    @staticmethod
    def of(extractions: Sequence[Extraction], text: TextOptions) -> "Vocabulary":
        """Normalise all that `extractions` state, one per passage in the order of the passages."""
        nothing = Statements.of([])
        empty = Vocabulary((), (), nothing, Lexicon.of((), ()))
        stated = {row: Stated.of(extraction, text) for row, extraction in enumerate(extractions)}
        return empty.changed(torch.empty(0, dtype=torch.int64), stated).vocabulary

    @cached_property
    def fact_ends(self) -> Ragged:
        """The phrase rows of each fact: subject and object, or the distinct names of a sentence, ascending.

        Every fact is stated, so statements tell.
        """
        stated = self.statements
        is_sentence = torch.tensor([isinstance(fact, Sentence) for fact in self.facts], dtype=torch.bool)
        ends = torch.empty(len(self.facts), 2, dtype=torch.int64)
        ends[stated.fact_idx, 0] = stated.subject_idx
        ends[stated.fact_idx, 1] = stated.object_idx
        triple_row = (~is_sentence).nonzero()[:, 0]
        told = is_sentence[stated.fact_idx]
        width = max(1, len(self.phrases))
        named = torch.unique(stated.fact_idx[told] * width + stated.subject_idx[told])
        row = torch.cat([triple_row.repeat_interleave(2), named // width])
        values = torch.cat([ends[triple_row].flatten(), named % width])
        order = torch.argsort(row, stable=True)
        return Ragged.grouped(row[order], values[order], num_rows=len(self.facts))

    @cached_property
    def named(self) -> Bool[Tensor, " phrases"]:
        """Whether more than half of the ends that are a phrase are written as a name."""
        ends = torch.cat([self.statements.subject_idx, self.statements.object_idx])
        written = self.statements.named.T.flatten()
        names = torch.bincount(ends[written], minlength=len(self.phrases))
        return 2 * names > torch.bincount(ends, minlength=len(self.phrases))

    def changed(
        self, passage_idx: Int64[Tensor, " old_passages"], stated: Mapping[int, Stated]
    ) -> "VocabularyChange":
        """What `of` gives for other passages, at the cost of those that differ.

        Old passage i is row `passage_idx[i]` now, in the same order; -1 takes back what it states.
        `stated` holds what others state, by their row.
        """
        row = passage_idx[self.statements.passage_idx]
        kept = self.statements.select(row >= 0)
        said = [(row, statement) for row, its in stated.items() for statement in its.statements]
        by_parts = {_parts(statement.fact): statement.fact for _, statement in said}
        parts = sorted(by_parts)
        alive = torch.bincount(kept.fact_idx, minlength=len(self.facts)) > 0
        facts = _merge(self.facts, alive, parts, [by_parts[key] for key in parts], _parts)
        ends = sorted({end for _, statement in said for end in (statement.subject, statement.object)})
        lives = torch.zeros(len(self.phrases), dtype=torch.bool)
        lives[torch.cat([kept.subject_idx, kept.object_idx])] = True
        phrases = _merge(self.phrases, lives, ends, ends, None)

        phrase_row = dict(zip(ends, phrases.key_idx.tolist(), strict=True))
        fact_row = dict(zip(parts, facts.key_idx.tolist(), strict=True))
        moved = Statements(
            row[row >= 0],
            facts.old_idx[kept.fact_idx],
            phrases.old_idx[kept.subject_idx],
            phrases.old_idx[kept.object_idx],
            kept.named,
        )
        come = Statements.of(
            [
                (passage, fact_row[_parts(s.fact)], phrase_row[s.subject], phrase_row[s.object], *s[3:])
                for passage, s in said
            ]
        )
        vocabulary = Vocabulary(
            phrases.entries,
            facts.entries,
            moved.joined(come),
            self.lexicon.changed(phrases.old_idx, phrases.entries, facts.old_idx, facts.entries),
        )
        return VocabularyChange(vocabulary, phrases.old_idx, facts.old_idx)


@dataclass(frozen=True, eq=False)
class VocabularyChange:
    """A vocabulary, and the row in it of each phrase and fact of the one before; -1 if nobody states it."""

    vocabulary: Vocabulary
    phrase_idx: Int64[Tensor, " old_phrases"]
    fact_idx: Int64[Tensor, " old_facts"]


@dataclass(frozen=True, eq=False)
class _Merge:
    """Entries in order, and the rows of the old entries (or -1) and of all keys."""

    entries: tuple[Any, ...]
    old_idx: Int64[Tensor, " old"]
    key_idx: Int64[Tensor, " keys"]


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
    return _Merge(merged, old_idx, key_idx)


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
