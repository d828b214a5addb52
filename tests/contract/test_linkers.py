"""What every linker must do, whichever it is."""

import json
from collections.abc import Callable
from functools import cache

import pytest

from hipporag_torch.chat import ChatReply, Prompt
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.linkers import Linker, LLMLinker, NgramLinker, NoLinker, SpacyLinker
from hipporag_torch.linkers.resolution import row_lists
from hipporag_torch.llms.scripted import ScriptedChatModel
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.types import Document, Extraction, Passage, Triple

EMBEDDER = HashingEmbedder(dim=128)
TRIPLES = (
    Triple("Ada Vale", "founded", "Northwind Press"),
    Triple("Northwind Press", "is in", "Bergen"),
    Triple("奥州市", "位置", "東北地方"),
    Triple("Who", "sang in", "1904"),
)
QUESTIONS = [
    "Where did Ada Vale found Northwind Press?",
    "where is bergen?",
    "WHO FOUNDED BERGEN?",
    "Did Adda Vale come to Norway?",
    "奥州市はどこですか？",
    "who is it?",
    "What about 1904?",
    "?",
    "Bergen " * 5000,
    "word " * 5000,
]


class TriplesExtractor:
    producer = "triples"
    calls_per_passage = 0

    def extract(self, passages: list[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [Extraction(triples=TRIPLES, entities=("奥州市", "東北地方")) for _ in passages]


def names(prompt: Prompt) -> str | ChatReply:
    """The question's first three words as names; none and an error for some."""
    words = prompt[-1].text.split("\n\n")[1].split()
    if "?" in words[-1]:
        return json.dumps({"entities": [" ".join(words[2:4]), *words[:3]]})
    return ChatReply("", "error", error="too long")


@cache
def spacy_linker() -> SpacyLinker:
    """One for all tests: its pipeline takes a second to load."""
    return SpacyLinker()


LINKERS: dict[str, Callable[[], Linker]] = {
    "ngram": NgramLinker,
    "spacy": spacy_linker,
    "llm": lambda: LLMLinker(llm=ScriptedChatModel(replies=names)),
    "none": NoLinker,
}


@pytest.fixture(params=LINKERS)
def linker(request: pytest.FixtureRequest) -> Linker:
    return LINKERS[request.param]()


@pytest.fixture(scope="module")
def indexer() -> Indexer:
    return Indexer(embedder=EMBEDDER, extractor=TriplesExtractor())


@pytest.fixture(scope="module")
def index(indexer: Indexer) -> Index:
    return indexer.add(indexer.empty(), [Document("Ada Vale founded Northwind Press in Bergen.")])[0]


def test_a_row_of_distinct_ascending_phrases_for_each_question(linker: Linker, index: Index) -> None:
    links = linker.link(index, EMBEDDER, QUESTIONS)
    rows = row_lists(links.phrase_idx)
    assert len(rows) == len(links.errors) == len(links.usage) == len(QUESTIONS)
    for linked, error in zip(rows, links.errors, strict=True):
        assert linked == sorted(set(linked))
        assert all(0 <= row < len(index.phrases) for row in linked)
        assert not (error and linked)
    assert links.dropped == () or len(links.dropped) == len(QUESTIONS)
    assert links.phrase_idx.values.device == index.phrase_emb.device


def test_a_batch_is_its_questions_one_by_one(linker: Linker, index: Index) -> None:
    links = linker.link(index, EMBEDDER, QUESTIONS)
    alone = [linker.link(index, EMBEDDER, [question]) for question in QUESTIONS]
    assert row_lists(links.phrase_idx) == [row_lists(one.phrase_idx)[0] for one in alone]
    assert links.errors == tuple(one.errors[0] for one in alone)
    assert links.usage == tuple(one.usage[0] for one in alone)


def test_numbers_and_question_words_are_never_linked(linker: Linker, index: Index) -> None:
    links = linker.link(index, EMBEDDER, QUESTIONS)
    linked = {index.phrases[row] for row in links.phrase_idx.values.tolist()}
    assert not linked & {"who", "1904"}


def test_no_questions(linker: Linker, index: Index) -> None:
    links = linker.link(index, EMBEDDER, [])
    assert (links.phrase_idx.num_rows, links.errors, links.usage) == (0, (), ())


def test_an_index_without_phrases(linker: Linker, indexer: Indexer) -> None:
    links = linker.link(indexer.empty(), EMBEDDER, QUESTIONS)
    assert row_lists(links.phrase_idx) == [[]] * len(QUESTIONS)


def test_all_but_none_find_a_name_that_is_written_out(linker: Linker, index: Index) -> None:
    (rows,) = row_lists(linker.link(index, EMBEDDER, ["Where did Ada Vale live?"]).phrase_idx)
    assert [index.phrases[row] for row in rows] == ([] if isinstance(linker, NoLinker) else ["ada vale"])
