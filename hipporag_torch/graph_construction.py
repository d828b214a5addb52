"""From statements and synonym pairs to the graph: a pure function, so history cannot matter."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from hipporag_torch.errors import ConfigError
from hipporag_torch.graph import Graph
from hipporag_torch.ops.csr import symmetric_csr
from hipporag_torch.ops.pairs import Pairs
from hipporag_torch.ops.ragged import Ragged

# Phrases that one graph has met are met again by the next. The number bounds the memory.
_REMEMBERED = 2**17
_DIGITS = re.compile(r"\d+")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """What the edges weigh; docs/graph.md says why.

    A pair of phrases weighs `fact_weight` × the facts that join it + `synonym_weight` × its cosine, a
    passage and a phrase that it states `membership_weight`, and a passage and a name that stands in its
    text but in nothing that it states `mention_weight`.

    synonym_threshold: least cosine of a synonym pair, in (0, 1]; above 1 there are none.
    synonym_cap: neighbours a phrase may list, the closest first; a pair needs both ends to list it.
    synonym_min_length: letters or digits a phrase needs to have synonyms; a CJK or Hangul character
        carries what several letters do, and counts twice.
    synonym_same_digits: refuse pairs whose digits differ ("1963" and "1964").
    """

    fact_weight: float = 2.0
    synonym_weight: float = 1.0
    membership_weight: float = 1.0
    mention_weight: float = 0.0
    synonym_threshold: float = 0.8
    synonym_cap: int = 100
    synonym_min_length: int = 3
    synonym_same_digits: bool = True

    def __post_init__(self) -> None:
        _require_synonym_options(self)
        for name in ("fact_weight", "synonym_weight", "membership_weight", "mention_weight"):
            weight = getattr(self, name)
            if not 0 <= weight < math.inf:
                raise ConfigError(f"graph.{name} must be finite and not negative, got {weight}")


@dataclass(frozen=True, kw_only=True)
class ReferenceGraphOptions:
    """The reference implementation's weights, for parity with published numbers.

    It enters facts and synonyms in both directions of an undirected graph, so they count twice, and a
    synonym takes the place of the facts of its direction. The fields are those of `GraphOptions`, but
    one end listing the other is enough, in that direction.
    """

    synonym_threshold: float = 0.8
    synonym_cap: int = 101
    synonym_min_length: int = 3

    def __post_init__(self) -> None:
        _require_synonym_options(self)


AnyGraphOptions = GraphOptions | ReferenceGraphOptions


@dataclass(frozen=True, eq=False)
class Statements:
    """Facts as passages state them: row i says that `passage_idx[i]` states `fact_idx[i]`.

    A triple that one passage words in two ways stands twice; the same wording stands once. A sentence
    stands once for each of its names, which is both subject and object then. `subject_idx` and `object_idx`
    are phrase rows, `passage_idx` passage rows, `fact_idx` fact rows; `named` says whether the subject and
    the object are written as names.
    """

    passage_idx: Int64[Tensor, " statements"]
    fact_idx: Int64[Tensor, " statements"]
    subject_idx: Int64[Tensor, " statements"]
    object_idx: Int64[Tensor, " statements"]
    named: Bool[Tensor, "statements 2"]

    @staticmethod
    def of(rows: Sequence[tuple[int, int, int, int, bool, bool]]) -> "Statements":
        """From rows of (passage, fact, subject, object, subject named, object named)."""
        columns = torch.tensor(rows, dtype=torch.int64).reshape(-1, 6)
        passage, fact, subject, object_ = columns[:, :4].unbind(1)
        return Statements(passage, fact, subject, object_, columns[:, 4:].bool())

    def select(self, rows: Bool[Tensor, " statements"] | Int64[Tensor, " selected"]) -> "Statements":
        return Statements(
            self.passage_idx[rows],
            self.fact_idx[rows],
            self.subject_idx[rows],
            self.object_idx[rows],
            self.named[rows],
        )

    def joined(self, other: "Statements") -> "Statements":
        """Both, in canonical order: by passage, fact, ends and how these are written."""
        both = Statements(
            torch.cat([self.passage_idx, other.passage_idx]),
            torch.cat([self.fact_idx, other.fact_idx]),
            torch.cat([self.subject_idx, other.subject_idx]),
            torch.cat([self.object_idx, other.object_idx]),
            torch.cat([self.named, other.named]),
        )
        order = torch.argsort(both.named[:, 0] * 2 + both.named[:, 1])
        for column in (both.object_idx, both.subject_idx, both.fact_idx, both.passage_idx):
            order = order[torch.argsort(column[order], stable=True)]
        return both.select(order)

    def __len__(self) -> int:
        return self.passage_idx.numel()

    def memberships(self, num_phrases: int) -> tuple[Int64[Tensor, " pairs"], Int64[Tensor, " pairs"]]:
        """The distinct (passage, phrase) pairs in which the phrase is an end of a triple."""
        phrase_idx = torch.cat([self.subject_idx, self.object_idx])
        key = torch.unique(self.passage_idx.repeat(2) * num_phrases + phrase_idx)
        return key // max(1, num_phrases), key % max(1, num_phrases)


def build_graph(
    phrases: Sequence[str],
    num_passages: int,
    statements: Statements,
    synonyms: Pairs,
    options: AnyGraphOptions,
    mentions: Ragged | None = None,
) -> Graph:
    """The graph of `statements` over `phrases` and passages, with the edges of HippoRAG 2.

    phrase – phrase: facts that join them, and synonymy; passage – phrase: the passage states the phrase
    (Gutiérrez et al., 2025, arXiv 2502.14802, "Offline Indexing" and "Dense-Sparse Integration").
    `synonyms` holds all pairs at or above the threshold; which of them count is decided here, so that
    a pair pushed out by the cap returns when others go. A fact about itself makes no edge. `mentions` are
    the phrases that stand in each passage's text, which `options.mention_weight` asks for.
    """
    num_phrases = len(phrases)
    num_nodes = num_phrases + num_passages
    passage_idx, member_idx = statements.memberships(num_phrases)
    fact_key, count = _fact_pairs(statements, num_phrases)
    first, second = fact_key // max(1, num_phrases), fact_key % max(1, num_phrases)
    if isinstance(options, ReferenceGraphOptions):
        fact_weight, membership_weight = 2 * count, 1.0
        synonyms, weight = _reference_synonyms(phrases, synonyms, options, fact_key, count)
    else:
        fact_weight, membership_weight = options.fact_weight * count, options.membership_weight
        synonyms = _mutual_synonyms(phrases, synonyms, options)
        weight = options.synonym_weight * synonyms.cosine.double()
    members = torch.full((len(member_idx),), membership_weight, dtype=torch.float64)
    mentioning_idx, mentioned_idx, mention_weight = _mentions(passage_idx, member_idx, mentions, options)
    low = torch.cat([first, synonyms.first_idx, member_idx, mentioned_idx])
    high = torch.cat([second, synonyms.second_idx, passage_idx + num_phrases, mentioning_idx + num_phrases])
    weight = torch.cat([fact_weight, weight, members, mention_weight])
    real = weight != 0
    return Graph(
        num_phrases, num_passages, symmetric_csr(low[real], high[real], weight[real], num_nodes=num_nodes)
    )


def _require_synonym_options(options: AnyGraphOptions) -> None:
    if not options.synonym_threshold > 0:
        raise ConfigError(f"graph.synonym_threshold must be above 0, got {options.synonym_threshold}")
    for name in ("synonym_cap", "synonym_min_length"):
        if getattr(options, name) < 0:
            raise ConfigError(f"graph.{name} must not be negative, got {getattr(options, name)}")


def _fact_pairs(
    statements: Statements, num_phrases: int
) -> tuple[Int64[Tensor, " pairs"], Float64[Tensor, " pairs"]]:
    """The keys of the pairs of distinct phrases that statements join, ascending, and how many join each."""
    low = torch.minimum(statements.subject_idx, statements.object_idx)
    high = torch.maximum(statements.subject_idx, statements.object_idx)
    key, count = torch.unique(_pair_key(low, high, num_phrases)[low != high], return_counts=True)
    return key, count.double()


def _mentions(
    passage_idx: Int64[Tensor, " pairs"],
    member_idx: Int64[Tensor, " pairs"],
    mentions: Ragged | None,
    options: AnyGraphOptions,
) -> tuple[Int64[Tensor, " mentions"], Int64[Tensor, " mentions"], Float64[Tensor, " mentions"]]:
    """The passages and phrases that a mention joins and a membership does not, and their weights."""
    if isinstance(options, ReferenceGraphOptions) or not options.mention_weight or mentions is None:
        return member_idx[:0], member_idx[:0], torch.empty(0, dtype=torch.float64)
    width = 1 + max((int(idx.max()) for idx in (member_idx, mentions.values) if len(idx)), default=0)
    mention = mentions.row * width + mentions.values
    mention = mention[~torch.isin(mention, passage_idx * width + member_idx)]
    weight = torch.full((len(mention),), options.mention_weight, dtype=torch.float64)
    return mention // width, mention % width, weight


def _mutual_synonyms(phrases: Sequence[str], pairs: Pairs, options: GraphOptions) -> Pairs:
    """The pairs that pass the filters and that both ends list among their closest."""
    if not len(pairs):
        return pairs
    rows = _rows_of(pairs)
    measured = [_measured(phrases[idx]) for idx in rows.tolist()]
    long_enough = torch.zeros(len(phrases), dtype=torch.bool)
    long_enough[rows] = torch.tensor([length for length, _ in measured]) >= options.synonym_min_length
    keep = long_enough[pairs.first_idx] & long_enough[pairs.second_idx]
    if options.synonym_same_digits:
        known: dict[str, int] = {}
        digits = torch.zeros(len(phrases), dtype=torch.int64)
        digits[rows] = torch.tensor([known.setdefault(numbers, len(known)) for _, numbers in measured])
        keep &= digits[pairs.first_idx] == digits[pairs.second_idx]
    pairs = _select(pairs, keep)
    first_lists, second_lists = _listed(pairs, options.synonym_cap)
    return _select(pairs, first_lists & second_lists)


def _reference_synonyms(
    phrases: Sequence[str], pairs: Pairs, options: ReferenceGraphOptions, fact_key: Tensor, fact_count: Tensor
) -> tuple[Pairs, Float64[Tensor, " pairs"]]:
    """The pairs as the reference enters them, and what they add to twice the facts of the same pair.

    Each phrase with more than two ASCII letters or digits enters its own list, in its own direction,
    where the cosine takes the place of the number of facts; the empty phrase is on no list.
    """
    seeks = torch.zeros(len(phrases), dtype=torch.bool)
    named = torch.zeros(len(phrases), dtype=torch.bool)
    rows = _rows_of(pairs)
    met = [phrases[idx] for idx in rows.tolist()]
    seeks[rows] = torch.tensor(
        [_ascii_length(p) >= options.synonym_min_length for p in met], dtype=torch.bool
    )
    named[rows] = torch.tensor([bool(phrase) for phrase in met], dtype=torch.bool)
    pairs = _select(pairs, named[pairs.first_idx] & named[pairs.second_idx])
    first_lists, second_lists = _listed(pairs, options.synonym_cap)
    directions = (first_lists & seeks[pairs.first_idx]).double() + (second_lists & seeks[pairs.second_idx])
    facts = torch.zeros(len(pairs), dtype=torch.float64)
    if len(fact_key):
        key = _pair_key(pairs.first_idx, pairs.second_idx, len(phrases))
        position = torch.searchsorted(fact_key, key).clamp(max=len(fact_key) - 1)
        facts = torch.where(fact_key[position] == key, fact_count[position], facts)
    return pairs, directions * (pairs.cosine.double() - facts)


def _listed(pairs: Pairs, cap: int) -> tuple[Bool[Tensor, " pairs"], Bool[Tensor, " pairs"]]:
    """Whether the first phrase of each pair has the second among its `cap` closest, and the reverse."""
    source = torch.cat([pairs.first_idx, pairs.second_idx])
    if not len(source) or int(torch.bincount(source).max()) <= cap:
        everyone = torch.ones(len(pairs), dtype=torch.bool)
        return everyone, everyone
    target = torch.cat([pairs.second_idx, pairs.first_idx])
    cosine = pairs.cosine.repeat(2)
    # By source, then closest first, then by row: stable sorts from the least key to the greatest.
    order = torch.argsort(target, stable=True)
    order = order[torch.argsort(cosine[order], stable=True, descending=True)]
    order = order[torch.argsort(source[order], stable=True)]
    place = torch.arange(len(order))
    starts = torch.searchsorted(source[order], source[order], right=False)
    listed = torch.empty(len(order), dtype=torch.bool)
    listed[order] = place - starts < cap
    return listed[: len(pairs)], listed[len(pairs) :]


def _select(pairs: Pairs, keep: Bool[Tensor, " pairs"]) -> Pairs:
    return Pairs(pairs.first_idx[keep], pairs.second_idx[keep], pairs.cosine[keep])


def _rows_of(pairs: Pairs) -> Int64[Tensor, " phrases"]:
    return torch.unique(torch.cat([pairs.first_idx, pairs.second_idx]))


def _pair_key(first: Tensor, second: Tensor, num_phrases: int) -> Int64[Tensor, " pairs"]:
    return first * num_phrases + second


@lru_cache(maxsize=_REMEMBERED)
def _ascii_length(phrase: str) -> int:
    """ASCII letters and digits."""
    return sum(map(str.isalnum, phrase.encode("ascii", "ignore").decode("ascii")))


@lru_cache(maxsize=_REMEMBERED)
def _measured(phrase: str) -> tuple[int, str]:
    """Letters and digits, those of scripts in which one character is a syllable or a word twice; and
    the runs of decimal digits, sorted: "9 may 1963" and "may 9, 1963" have the same."""
    length = sum(2 if _IDEOGRAPH.match(c) else 1 for c in phrase if c.isalnum())
    return length, " ".join(sorted(_DIGITS.findall(phrase)))
