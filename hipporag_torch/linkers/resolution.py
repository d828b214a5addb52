"""Names that were found in questions → phrases of an index: the same for all linkers."""

import re
from collections.abc import Iterable, Sequence

from hipporag_torch.embedders.check import embedded
from hipporag_torch.errors import ConfigError
from hipporag_torch.index import Index
from hipporag_torch.lexical import linking_tokens, token_rows
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.ops.topk import table_topk
from hipporag_torch.protocols import Embedder

_NUMBER = re.compile(r"\d+")
# The cosine of two equal vectors comes out as less than 1 by at most this.
_ROUNDING = 1e-6


def check_min_cosine(min_cosine: float) -> None:
    """Raise `ConfigError` unless a name can be as near to a phrase as `min_cosine`."""
    if not 0 < min_cosine <= 1:
        raise ConfigError(f"linker.min_cosine must be above 0 and at most 1, got {min_cosine}")


def phrase_rows(index: Index, rows: Sequence[Sequence[int]]) -> Ragged:
    """Rows of phrases as a record on the device of `index`."""
    return Ragged.of(rows).to(index.phrase_emb.device)


def row_lists(rows: Ragged) -> list[list[int]]:
    """The rows of a record as lists."""
    return [piece.tolist() for piece in rows.values.cpu().split(rows.lengths.tolist())]


def is_name(text: str) -> bool:
    """Whether a text may name a phrase: it is no number, and no lone stop word or question word."""
    return any(map(str.isalpha, text)) and bool(linking_tokens(text))


def resolve(
    index: Index, embedder: Embedder, names: Sequence[Sequence[str]], *, min_cosine: float
) -> list[list[int]]:
    """For each question the distinct phrase rows that its names stand for, ascending.

    A name stands for the phrases whose key equals its own; if there is none, for the phrase that is nearest
    to it by embedding, of equally near ones the lower row, if their cosine is at least `min_cosine` and they
    hold the same numbers: vectors hardly tell "Apollo 11" from "Apollo 12". The names of all questions that
    need embedding are embedded in one call, each once.
    """
    distinct = list(dict.fromkeys(name for of_question in names for name in of_question if is_name(name)))
    phrases_of = _exact(index, distinct)
    phrases_of |= _nearest(index, embedder, (n for n in distinct if not phrases_of[n]), min_cosine)
    return [
        sorted({row for name in of_question for row in phrases_of.get(name, ())}) for of_question in names
    ]


def _exact(index: Index, names: Sequence[str]) -> dict[str, list[int]]:
    if not names:
        return {}
    tokens = token_rows(names, linking_tokens).to(index.phrase_emb.device)
    return dict(zip(names, row_lists(index.matcher.exact(tokens)), strict=True))


def _nearest(
    index: Index, embedder: Embedder, names: Iterable[str], min_cosine: float
) -> dict[str, list[int]]:
    # Phrases were embedded as their keys are written, so names are as well.
    key_of = {name: key for name in names if (key := index.text.phrase(name))}
    if not key_of or not index.phrases:
        return {}
    keys = list(dict.fromkeys(key_of.values()))
    name_emb = embedded(embedder, keys, "phrase").to(index.phrase_emb.device)
    best = table_topk(index.phrase_emb, name_emb, 1)
    found = zip(keys, best.idx[:, 0].tolist(), best.scores[:, 0].tolist(), strict=True)
    nearest = {
        key: [row]
        for key, row, cosine in found
        if cosine > min_cosine - _ROUNDING and _numbers(key) == _numbers(index.phrases[row])
    }
    return {name: nearest.get(key, []) for name, key in key_of.items()}


def _numbers(text: str) -> list[str]:
    return sorted(_NUMBER.findall(text))
