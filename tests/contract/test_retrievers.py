"""What every retriever must do, whichever it is."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, get_args

import pytest

from hipporag_torch.chat import Prompt
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.ircot import IRCoTRetriever
from hipporag_torch.llms.scripted import ScriptedChatModel
from hipporag_torch.protocols import Progress, Retriever, no_progress
from hipporag_torch.retrievers.bm25 import BM25Retriever
from hipporag_torch.retrievers.dense import DenseRetriever
from hipporag_torch.retrievers.dense_bm25 import DenseBM25Retriever
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.types import Document, Extraction, Passage, Ranking, Route, Triple

TRIPLES = {
    "Ada Vale founded Northwind Press in Bergen.": (
        Triple("Ada Vale", "founded", "Northwind Press"),
        Triple("Northwind Press", "founded in", "Bergen"),
    ),
    "Northwind Press prints atlases of the Arctic.": (Triple("Northwind Press", "prints", "atlases"),),
    "Bergen lies on the west coast of Norway.": (Triple("Bergen", "lies in", "Norway"),),
    "Tove Lund maps glaciers for Northwind Press.": (Triple("Tove Lund", "works for", "Northwind Press"),),
    "Glaciers cover half of Svalbard.": (Triple("Glaciers", "cover", "Svalbard"),),
    # The same words, so the same vector and the same BM25 score.
    "Rye bread, baked aboard.": (),
    "Aboard, baked rye bread.": (),
}
QUESTIONS = [
    "Who founded Northwind Press?",
    "rye bread",
    "Where does Tove Lund map glaciers?",
    "In which country lies Bergen?",
    "What covers Svalbard?",
]
EMBEDDER = HashingEmbedder(dim=128)
Make = Callable[..., Retriever]


class GivenExtractor:
    producer = "given"
    calls_per_passage = 0

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [Extraction(triples=TRIPLES[passage.text]) for passage in passages]


def index_of(*texts: str) -> Index:
    indexer = Indexer(embedder=EMBEDDER, extractor=GivenExtractor())
    return indexer.add(indexer.empty(), [Document(text) for text in texts])[0]


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of(*TRIPLES)


def thinks(prompt: Prompt) -> str:
    """Asks in other words twice, and is done."""
    question, _, told = prompt[-1].text.rpartition("Question: ")[2].partition("\n\nThoughts so far:\n")
    # These words share no hash with the facts: a cosine of 0 is then exactly 0, in any batch.
    return [f"Surely {question}", f"Tell me {question}", "So the answer is: bread"][len(told.splitlines())]


KINDS = {"dense": DenseRetriever, "dense_bm25": DenseBM25Retriever}


@pytest.fixture(params=["hipporag", "dense", "bm25", "dense_bm25", "ircot"])
def make(request: pytest.FixtureRequest, index: Index) -> Make:
    """A way to make the retriever; `options` are for those that have them."""

    def made(over: Index = index, **options: Any) -> Retriever:
        if request.param == "bm25":
            return BM25Retriever(index=over)
        kind = KINDS.get(request.param, HippoRAGRetriever)
        plain = kind(index=over, embedder=EMBEDDER, **options)
        if request.param == "ircot":
            return IRCoTRetriever(retriever=plain, llm=ScriptedChatModel(replies=thinks), max_steps=4)
        return plain

    return made


def assert_same(one: Ranking, other: Ranking) -> None:
    """Equal to 1e-6; passages whose scores are that close may change places."""
    assert (one.question, one.route) == (other.question, other.route)
    assert one.scores == pytest.approx(other.scores, abs=1e-6)
    scores = dict(zip(one.passage_ids, one.scores, strict=True))
    assert scores == pytest.approx(dict(zip(other.passage_ids, other.scores, strict=True)), abs=1e-6)


def test_record_shape(make: Make, index: Index) -> None:
    rankings = make().retrieve(QUESTIONS, top_k=4)
    assert [ranking.question for ranking in rankings] == QUESTIONS
    for ranking in rankings:
        assert 1 <= len(ranking.passages) == len(ranking.scores) <= 4
        assert len(set(ranking.passage_ids)) == len(ranking.passage_ids)
        assert all(passage in index.passages for passage in ranking.passages)
        assert all(type(score) is float and math.isfinite(score) for score in ranking.scores)
        assert list(ranking.scores) == sorted(ranking.scores, reverse=True)
        assert ranking.route in get_args(Route)
        assert ranking.trace is None


def test_best_passage_is_the_one_that_answers(make: Make) -> None:
    best = [ranking.passages[0].text for ranking in make().retrieve(QUESTIONS, top_k=1)]
    assert best[0] == "Ada Vale founded Northwind Press in Bergen."
    assert best[3] == "Bergen lies on the west coast of Norway."
    assert best[4] == "Glaciers cover half of Svalbard."


def test_top_k_cuts_the_full_ranking(make: Make) -> None:
    retriever = make()
    for short, full in zip(
        retriever.retrieve(QUESTIONS, top_k=2), retriever.retrieve(QUESTIONS, top_k=99), strict=True
    ):
        assert (short.passage_ids, short.scores) == (full.passage_ids[:2], full.scores[:2])


def test_top_k_beyond_the_corpus_returns_every_passage(make: Make, index: Index) -> None:
    (ranking,) = make().retrieve(["rye bread"], top_k=99)
    matching = [p for p in index.passages if "bread" in p.text]
    assert len(ranking.passages) == (len(matching) if ranking.route == "bm25:requested" else len(TRIPLES))


def test_a_question_does_not_feel_its_batch(make: Make) -> None:
    retriever = make()
    together = retriever.retrieve(QUESTIONS * 9, top_k=99)
    for number, question in enumerate(QUESTIONS):
        (alone,) = retriever.retrieve([question], top_k=99)
        for ranking in together[number :: len(QUESTIONS)]:
            assert_same(alone, ranking)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
def test_batch_size_changes_nothing(make: Make, batch_size: int) -> None:
    expected = make().retrieve(QUESTIONS, top_k=99)
    for one, other in zip(expected, make(batch_size=batch_size).retrieve(QUESTIONS, top_k=99), strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("batch_size", [0, -1])
@pytest.mark.parametrize("retriever", [HippoRAGRetriever, DenseRetriever, DenseBM25Retriever])
def test_batch_size_below_1_is_refused(index: Index, retriever: type, batch_size: int) -> None:
    with pytest.raises(ConfigError, match=f"retriever.batch_size must be at least 1, got {batch_size}"):
        retriever(index=index, embedder=EMBEDDER, batch_size=batch_size)


def test_permuted_questions_permute_the_rankings(make: Make) -> None:
    order = [3, 0, 4, 2, 1]
    expected = make().retrieve(QUESTIONS, top_k=99)
    permuted = make().retrieve([QUESTIONS[i] for i in order], top_k=99)
    for i, ranking in zip(order, permuted, strict=True):
        assert_same(expected[i], ranking)


def test_two_runs_are_equal(make: Make) -> None:
    assert make().retrieve(QUESTIONS, top_k=99) == make().retrieve(QUESTIONS, top_k=99)


def test_ties_go_to_the_lower_passage_id(make: Make) -> None:
    ties = 0
    for ranking in make().retrieve(QUESTIONS, top_k=99):
        hits = list(zip(ranking.scores, ranking.passage_ids, strict=True))
        ties += sum(a[0] == b[0] for a, b in pairwise(hits))
        assert all(a[0] > b[0] or a[1] < b[1] for a, b in pairwise(hits))
    assert ties


@pytest.mark.parametrize("top_k", [0, -3, True, "3", 2.0, None])
def test_unusable_top_k(make: Make, top_k: Any) -> None:
    with pytest.raises(InputError, match=r"top_k must be a whole number of at least 1, got"):
        make().retrieve(QUESTIONS, top_k=top_k)


@pytest.mark.parametrize("question", ["", " \n\t", None, 7, "half \ud800"])
def test_unusable_question_is_named_by_its_number(make: Make, question: Any) -> None:
    with pytest.raises(InputError, match=r"question 1 "):
        make().retrieve(["Who?", question], top_k=1)


def test_a_bare_string_is_not_a_list_of_questions(make: Make) -> None:
    with pytest.raises(InputError, match="list of strings"):
        make().retrieve("Who?", top_k=1)


def test_no_questions(make: Make) -> None:
    assert make().retrieve([], top_k=3) == []
    assert make(index_of()).retrieve([], top_k=3) == []


def test_empty_index(make: Make) -> None:
    rankings = make(index_of()).retrieve(QUESTIONS, top_k=3, trace=True)
    assert [(r.question, r.passages, r.scores, r.route) for r in rankings] == [
        (question, (), (), "none:empty_index") for question in QUESTIONS
    ]
    with pytest.raises(InputError, match="top_k"):
        make(index_of()).retrieve(QUESTIONS, top_k=0)


def test_asking_for_a_trace_changes_nothing_else(make: Make) -> None:
    for plain, traced in zip(
        make().retrieve(QUESTIONS, top_k=3), make().retrieve(QUESTIONS, top_k=3, trace=True), strict=True
    ):
        assert (plain.passages, plain.scores, plain.route) == (traced.passages, traced.scores, traced.route)


def test_what_it_reads_is_stated(make: Make) -> None:
    retriever = make()
    expected = {
        HippoRAGRetriever: "graph",
        DenseRetriever: "vectors",
        DenseBM25Retriever: "vectors",
        BM25Retriever: "texts",
    }
    assert retriever.reads == expected.get(type(retriever), "graph")


@pytest.mark.parametrize("wrapped", [HippoRAGRetriever, DenseRetriever])
def test_a_wrapping_retriever_reads_what_it_wraps_reads(index: Index, wrapped: type) -> None:
    looped = IRCoTRetriever(
        retriever=wrapped(index=index, embedder=EMBEDDER), llm=ScriptedChatModel(replies=thinks)
    )
    assert looped.reads == wrapped.reads
