"""Which of many known sequences of tokens occur in others, for all of them at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from hipporag_torch.ops.ragged import Ragged

# An odd number with its bits well mixed (2⁶⁴ / golden ratio): hashes are polynomials in it, modulo 2⁶⁴.
_BASE = -7046029254386353131
# Longer sequences are not looked for inside others.
_MAX_TOKENS = 32


@dataclass(frozen=True, eq=False)
class SequenceTable:
    """Known sequences by the hash of their tokens. Row i of `entries` are the sequences that have `key[i]`.

    `prefix` are the hashes of what they begin with, up to 32 tokens, ascending.
    """

    key: Int64[Tensor, " keys"]
    entries: Ragged
    prefix: Int64[Tensor, " prefixes"]

    @staticmethod
    def of(sequences: Ragged, wanted: Bool[Tensor, " rows"]) -> "SequenceTable":
        """The table of the `wanted` rows of `sequences` that have tokens."""
        rows = (wanted & (sequences.lengths > 0)).nonzero()[:, 0]
        chosen = sequences.select(rows)
        hashes = _hashes(chosen)
        order = torch.argsort(hashes, stable=True)
        key, counts = torch.unique_consecutive(hashes[order], return_counts=True)
        row = torch.repeat_interleave(torch.arange(len(key), device=key.device), counts)
        entries = Ragged.grouped(row, rows[order], num_rows=len(key))
        beginnings = [begun for _, begun in islice(_beginnings(chosen), _MAX_TOKENS)]
        return SequenceTable(key, entries, torch.unique(torch.cat([key[:0], *beginnings])))

    def equal(self, sequences: Ragged) -> Ragged:
        """For each sequence the rows of those that equal it, ascending."""
        place, is_known = _located(self.key, _hashes(sequences))
        row = (is_known & (sequences.lengths > 0)).nonzero()[:, 0]
        return self._rows(row, place[row], sequences.num_rows)

    def inside(self, sequences: Ragged) -> Ragged:
        """For each sequence the rows of those that occur in it, ascending, each once.

        Of those that begin at one place the longest counts, and none that lies within another. At most 32
        tokens long.
        """
        tokens, row = sequences.values, sequences.row
        stop = sequences.row_ptr[1:][row]
        at = torch.arange(len(tokens), device=tokens.device)
        end, found, hashes = torch.zeros_like(at), torch.zeros_like(at), torch.ones_like(at)
        for length in range(1, _MAX_TOKENS + 1):
            fits = at + length <= stop[at]
            at = at[fits]
            hashes = hashes[fits] * _BASE + tokens[at + length - 1]
            # Few places go on: nearly all of the work is the first step's.
            begins = _located(self.prefix, hashes)[1]
            at, hashes = at[begins], hashes[begins]
            if not len(at):
                break
            place, is_known = _located(self.key, hashes)
            hit = at[is_known]
            end[hit] = hit + length
            found[hit] = place[is_known]
        # What begins earlier and ends no sooner holds it. Sequences stand side by side, so none reaches over.
        reached = torch.cat([end.new_zeros(1), end.cummax(0).values[:-1]]) if len(end) else end
        hit = (end > reached).nonzero()[:, 0]
        return self._rows(row[hit], found[hit], sequences.num_rows)

    def _rows(self, row: Int64[Tensor, " hits"], place: Int64[Tensor, " hits"], num_rows: int) -> Ragged:
        """The entries at `place`, gathered by `row`, without repetitions."""
        hits = self.entries.select(place)
        width = 1 + (int(self.entries.values.max()) if self.entries.values.numel() else 0)
        key = torch.unique(row[hits.row] * width + hits.values)
        return Ragged.grouped(key // width, key % width, num_rows=num_rows)


@dataclass(frozen=True, eq=False)
class PhraseMatcher:
    """The phrases of an index, to be found by their words: all of them, and those that are names."""

    phrases: SequenceTable
    names: SequenceTable

    @staticmethod
    def of(phrase_tokens: Ragged, named: Bool[Tensor, " phrases"]) -> "PhraseMatcher":
        everyone = torch.ones_like(named)
        return PhraseMatcher(
            SequenceTable.of(phrase_tokens, everyone), SequenceTable.of(phrase_tokens, named)
        )

    def find(self, tokens: Ragged) -> Ragged:
        """For each text the rows of the names that occur in it, as `SequenceTable.inside` finds them."""
        return self.names.inside(tokens)

    def exact(self, tokens: Ragged) -> Ragged:
        """For each text the rows of the phrases, names or not, that equal it."""
        return self.phrases.equal(tokens)


def _hashes(sequences: Ragged) -> Int64[Tensor, " rows"]:
    """The hash of each whole sequence; 0 without tokens."""
    hashes = torch.zeros(sequences.num_rows, dtype=torch.int64, device=sequences.values.device)
    for rows, begun in _beginnings(sequences):
        hashes[rows] = begun
    return hashes


def _beginnings(sequences: Ragged) -> Iterator[tuple[Tensor, Tensor]]:
    """For 1, 2, … tokens the rows that have so many, ascending, and the hashes of these tokens."""
    rows = (sequences.lengths > 0).nonzero()[:, 0]
    # From 1, so that a token 0 at the beginning tells.
    hashes = torch.ones_like(rows)
    length = 0
    while len(rows):
        hashes = hashes * _BASE + sequences.values[sequences.row_ptr[rows] + length]
        yield rows, hashes
        length += 1
        longer = sequences.lengths[rows] > length
        rows, hashes = rows[longer], hashes[longer]


def _located(
    sorted_keys: Int64[Tensor, " keys"], wanted: Int64[Tensor, " wanted"]
) -> tuple[Int64[Tensor, " wanted"], Bool[Tensor, " wanted"]]:
    """Where each wanted key stands or would stand, and whether it is there."""
    if not len(sorted_keys):
        return torch.zeros_like(wanted), torch.zeros_like(wanted, dtype=torch.bool)
    place = torch.searchsorted(sorted_keys, wanted).clamp(max=len(sorted_keys) - 1)
    return place, sorted_keys[place] == wanted
