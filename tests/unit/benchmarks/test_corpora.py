"""Synthetic corpora: the proportions of the real one, the same each time."""

import pytest
import torch

from hipporag_torch.benchmarks.corpora import Corpus, synthetic_corpus
from hipporag_torch.benchmarks.index import same_index
from hipporag_torch.index import Index
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever

NUM_PASSAGES = 300


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return synthetic_corpus(NUM_PASSAGES)


@pytest.fixture(scope="module")
def index(corpus: Corpus) -> Index:
    return built(corpus)


def built(corpus: Corpus) -> Index:
    return corpus.indexer.add(corpus.indexer.empty(), corpus.documents)[0]


def test_a_passage_has_as_much_as_one_of_musique(index: Index) -> None:
    passage_idx, _ = index.statements.memberships(len(index.phrases))
    assert len(index.passages) == NUM_PASSAGES
    assert len(index.phrases) == int(8.6 * NUM_PASSAGES)
    assert len(index.facts) / NUM_PASSAGES == pytest.approx(9, abs=0.05)
    assert len(passage_idx) / NUM_PASSAGES == pytest.approx(10.5, abs=0.1)
    assert len(index.synonyms) / NUM_PASSAGES == pytest.approx(3.7, abs=0.1)


def test_synonyms_are_far_above_the_threshold_and_all_others_far_below(index: Index) -> None:
    cosine = index.phrase_emb @ index.phrase_emb.T
    cosine.fill_diagonal_(0.0)
    assert not ((cosine > 0.5) & (cosine < 0.85)).any()


def test_few_phrases_stand_in_many_passages_and_most_in_one(index: Index) -> None:
    counts = index.passages_per_phrase
    assert (counts == 1).float().mean() > 0.8
    assert counts.max() > 10


def test_every_question_reaches_the_graph(corpus: Corpus, index: Index) -> None:
    rankings = HippoRAGRetriever(index=index, embedder=corpus.indexer.embedder).retrieve(
        corpus.questions, top_k=1
    )
    assert {ranking.route for ranking in rankings} == {"graph"}


def test_the_same_seed_gives_the_same_corpus_and_another_one_does_not(index: Index) -> None:
    assert same_index(built(synthetic_corpus(NUM_PASSAGES)), index)
    other = built(synthetic_corpus(NUM_PASSAGES, seed=1))
    assert not torch.equal(other.passage_emb, index.passage_emb)
    assert other.facts != index.facts
