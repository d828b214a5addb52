"""BM25 over short texts, by hand and against the bm25s library."""

import math

import bm25s
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.ops.bm25 import BM25
from hipporag_torch.ops.ragged import Ragged

Rows = list[list[int]]
TEXTS = st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=8)
QUERIES = st.lists(st.lists(st.integers(0, 12), max_size=5), min_size=1, max_size=4)


def test_a_case_by_hand(device: torch.device) -> None:
    """Of three texts of 1, 2 and 3 tokens, token 7 stands in two, twice in the last."""
    scores = BM25.of(Ragged.of([[5], [7, 5], [7, 7, 9]]).to(device)).scores(Ragged.of([[7]]).to(device))
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    once = 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 2))
    twice = 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2))
    assert scores.tolist()[0] == pytest.approx([0, idf * once, idf * twice], rel=1e-6)
    assert scores.device.type == device.type


def test_options_bend_and_correct() -> None:
    """Without either, a text gains the token's idf, however long it is and however often it says it."""
    idf = math.log(1 + (2 - 2 + 0.5) / (2 + 0.5))
    scores = BM25.of(Ragged.of([[1], [1, 1, 2]]), k1=0.0).scores(Ragged.of([[1]]))
    assert scores.tolist()[0] == pytest.approx([idf, idf], rel=1e-6)
    flat = BM25.of(Ragged.of([[1], [1, 2, 3]]), b=0.0).scores(Ragged.of([[1]]))
    assert flat[0, 0] == flat[0, 1]


def test_a_token_counts_as_often_as_the_query_repeats_it() -> None:
    weighed = BM25.of(Ragged.of([[1, 2], [2, 3]]))
    once, twice = weighed.scores(Ragged.of([[1], [1, 1]])).unbind(0)
    assert torch.equal(twice, 2 * once)


def test_what_no_text_has_gives_nothing() -> None:
    weighed = BM25.of(Ragged.of([[1, 2], [], [2]]))
    known, with_unknown, unknown, empty = weighed.scores(Ragged.of([[2], [0, 2, 99], [0, 99], []])).unbind(0)
    assert torch.equal(with_unknown, known)
    assert known[1] == 0
    assert unknown.tolist() == empty.tolist() == [0, 0, 0]


@pytest.mark.parametrize("texts", [[], [[]], [[], []]])
def test_texts_without_tokens_score_nothing(texts: Rows) -> None:
    scores = BM25.of(Ragged.of(texts)).scores(Ragged.of([[1], []]))
    assert torch.equal(scores, torch.zeros(2, len(texts)))


def test_no_queries_have_no_scores() -> None:
    assert BM25.of(Ragged.of([[1], [2]])).scores(Ragged.of([])).shape == (0, 2)


@given(TEXTS.filter(lambda texts: any(texts)), QUERIES)
def test_it_is_the_librarys_lucene_up_to_a_factor(texts: Rows, queries: Rows) -> None:
    """The library leaves out the factor k1 + 1."""
    known = {token for text in texts for token in text}
    library = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    library.index([list(map(str, text)) for text in texts], show_progress=False)
    scores = BM25.of(Ragged.of(texts)).scores(Ragged.of(queries))
    for query, ours in zip(queries, scores, strict=True):
        tokens = [str(token) for token in query if token in known]
        theirs = library.get_scores(tokens) if tokens else np.zeros(len(texts))
        np.testing.assert_allclose(ours.numpy(), 2.2 * theirs, rtol=1e-5, atol=1e-6)


@given(TEXTS, QUERIES)
def test_a_batch_is_its_queries_one_by_one(texts: Rows, queries: Rows) -> None:
    weighed = BM25.of(Ragged.of(texts))
    alone = torch.cat([weighed.scores(Ragged.of([query])) for query in queries])
    torch.testing.assert_close(weighed.scores(Ragged.of(queries)), alone, rtol=1e-6, atol=1e-7)
