"""Phrases and facts as tokens, for what is matched by words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from hipporag_torch.lexical import lexical_tokens, linking_tokens, token_rows
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.types import Fact


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The tokens of each phrase and fact of a vocabulary, as numbers; on the CPU.

    `phrase_tokens` are the words of a phrase in order, none if it is a single word that names nothing;
    `fact_tokens` those of a fact without stop words.
    """

    phrase_tokens: Ragged
    fact_tokens: Ragged

    @staticmethod
    def of(phrases: Sequence[str], facts: Sequence[Fact]) -> "Lexicon":
        return Lexicon(_phrase_rows(phrases), _fact_rows(facts))

    def changed(
        self,
        phrase_idx: Int64[Tensor, " old_phrases"],
        phrases: Sequence[str],
        fact_idx: Int64[Tensor, " old_facts"],
        facts: Sequence[Fact],
    ) -> "Lexicon":
        """Those of the next vocabulary: old row i is its row `phrase_idx[i]` or `fact_idx[i]`, gone if -1."""
        return Lexicon(
            _carried(self.phrase_tokens, phrase_idx, phrases, _phrase_rows),
            _carried(self.fact_tokens, fact_idx, facts, _fact_rows),
        )


def _phrase_rows(phrases: Sequence[str]) -> Ragged:
    return token_rows(phrases, linking_tokens)


def _fact_rows(facts: Sequence[Fact]) -> Ragged:
    return token_rows([" ".join(fact.parts) for fact in facts], lexical_tokens)


def _carried(
    old: Ragged,
    new_idx: Int64[Tensor, " old"],
    entries: Sequence[Any],
    make: Callable[[Sequence[Any]], Ragged],
) -> Ragged:
    """Old row i at `new_idx[i]` unless that is -1, the others made of their entries."""
    source = torch.full((len(entries),), -1)
    alive = (new_idx >= 0).nonzero()[:, 0]
    source[new_idx[alive]] = alive
    missing = (source < 0).nonzero()[:, 0]
    if not len(missing):
        return old.select(source)
    source[missing] = old.num_rows + torch.arange(len(missing))
    return old.joined(make([entries[row] for row in missing.tolist()])).select(source)
