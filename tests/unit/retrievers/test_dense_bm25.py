import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest

from hipporag_torch.errors import CompatibilityError, ConfigError
from hipporag_torch.index import Index
from hipporag_torch.retrievers.bm25 import BM25Retriever
from hipporag_torch.retrievers.dense_bm25 import DenseBM25Retriever
from hipporag_torch.types import Ranking

COSINES = {"rye bread": 0.0, "ferry to bergen": 0.6, "atlas": -1.0, "ferry": 0.8}


@pytest.fixture
def ask(index_of: Callable[..., Index], table_embedder: type) -> Callable[..., tuple[Ranking, Index]]:
    """Ask a question that has these cosines with the passages."""

    def asked(question: str, cosines: dict[str, float] = COSINES, **options: Any) -> tuple[Ranking, Index]:
        table = {text: [cosine, math.sqrt(1 - cosine**2)] for text, cosine in cosines.items()}
        embedder = table_embedder(table, otherwise=[1.0, 0.0])
        index = index_of(dict.fromkeys(cosines, ()), embedder)
        (ranking,) = DenseBM25Retriever(index=index, embedder=embedder, **options).retrieve(
            [question], top_k=99
        )
        return ranking, index

    return asked


def scores_of(ranking: Ranking) -> dict[str, float]:
    return {p.text: score for p, score in zip(ranking.passages, ranking.scores, strict=True)}


def z(scores: dict[str, float]) -> dict[str, float]:
    mean, deviation = statistics.fmean(scores.values()), statistics.stdev(scores.values())
    return {text: (score - mean) / deviation for text, score in scores.items()}


@pytest.mark.parametrize("weight", [0.0, 0.5, 2.0])
def test_scores_are_the_weighted_sum_of_both_standardised(
    ask: Callable[..., tuple[Ranking, Index]], weight: float
) -> None:
    ranking, index = ask("bergen bread ferry", bm25_weight=weight)
    words = BM25Retriever(index=index).scores("bergen bread ferry").tolist()
    lexical = z({p.text: score for p, score in zip(index.passages, words, strict=True)})
    expected = {text: cosine + weight * lexical[text] for text, cosine in z(COSINES).items()}
    assert scores_of(ranking) == pytest.approx(expected, abs=1e-5)
    assert list(ranking.scores) == sorted(ranking.scores, reverse=True)
    assert (ranking.route, ranking.trace) == ("dense_bm25:requested", None)


def test_without_a_shared_word_the_cosine_decides(ask: Callable[..., tuple[Ranking, Index]]) -> None:
    ranking, _ = ask("glacier", bm25_weight=5.0)
    assert scores_of(ranking) == pytest.approx(z(COSINES), abs=1e-5)


def test_equal_cosines_leave_the_decision_to_the_words(ask: Callable[..., tuple[Ranking, Index]]) -> None:
    ranking, _ = ask("bread", {"rye bread": 0.3, "ferry": 0.3, "atlas": 0.3})
    assert ranking.passages[0].text == "rye bread"
    assert ranking.scores == pytest.approx((1 / math.sqrt(3), *[-0.5 / math.sqrt(3)] * 2), abs=1e-5)


def test_one_passage_scores_nothing_and_is_found(ask: Callable[..., tuple[Ranking, Index]]) -> None:
    assert scores_of(ask("ferry", {"ferry": 0.8})[0]) == {"ferry": 0.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bm25_weight": -0.1}, "retriever.bm25_weight must be a finite number and not negative, got -0.1"),
        ({"bm25_weight": math.inf}, "retriever.bm25_weight must be a finite number"),
        ({"bm25_weight": math.nan}, "retriever.bm25_weight must be a finite number"),
        ({"k1": -1}, "retriever.k1 must not be negative"),
        ({"batch_size": 0}, "retriever.batch_size must be at least 1"),
    ],
)
def test_options_out_of_range(
    ask: Callable[..., tuple[Ranking, Index]], options: dict[str, float], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        ask("ferry", **options)


def test_another_embedder_than_the_indexs_is_refused(
    index_of: Callable[..., Index], table_embedder: type
) -> None:
    index = index_of({"p": []}, table_embedder({}, otherwise=[1.0, 0.0]))
    with pytest.raises(CompatibilityError, match="the index was built with the embedder"):
        DenseBM25Retriever(index=index, embedder=table_embedder({}, otherwise=[1.0, 0.0], name="other"))
