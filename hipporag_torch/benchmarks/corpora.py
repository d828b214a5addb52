"""Corpora with their extractions and vectors at hand: the real one, and synthetic ones of any size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.benchmarks.golden import GoldenEmbedder, GoldenVectors, golden_dataset, golden_indexer
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.store.vectors import VectorType
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Document, Extraction, Passage, Triple

# Read off the index of musique_train, per passage: 8.6 phrases that stand in no passage before it, 10.5
# memberships, 9.0 facts, 2.7 predicates, and 3.7 pairs of synonyms, here in groups of four.
_PHRASES, _MEMBERSHIPS, _FACTS, _PREDICATES = 8.6, 10.5, 9, 2.7
_GROUP = 4
_PHRASES_PER_GROUP = 14
_QUESTIONS = 32
_DIM = 384
# Cosine of two phrases of one group, to within 0.1; that of others stays below 0.4.
_GROUP_COSINE = 0.9
_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvwxyz" for vowel in "aeiou"]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents, questions, and an indexer that needs no model for either."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[str, ...]
    indexer: Indexer

    def open(self, path: Path, *, vectors: VectorType | None = None) -> HippoRAG:
        """The memory in `path`, which is made if there is none, with the parts of the indexer."""
        return HippoRAG.open(
            path,
            embedder=self.indexer.embedder,
            extractor=self.indexer.extractor,
            text=self.indexer.text,
            graph=self.indexer.graph_options,
            vectors=vectors,
        )


def golden_corpus() -> Corpus:
    """musique_train with the reference's triples and vectors. Raises `DatasetError` if they are not there."""
    dataset = golden_dataset()
    indexer = golden_indexer(GoldenEmbedder(GoldenVectors.load(), new_names=True))
    questions = tuple(question.text for question in dataset.questions)
    return Corpus("musique_train", dataset.documents, questions, indexer)


def synthetic_corpus(num_passages: int, *, seed: int = 0) -> Corpus:
    """`num_passages` passages with the proportions of musique_train, and 32 questions.

    Same seed, same corpus. How often phrases recur follows a power law. Vectors are random; that of a
    question is near one of a fact.
    """
    rng = np.random.default_rng(seed)
    num_phrases = int(num_passages * _PHRASES)
    stated = [
        _triples(rng, passage, num_phrases, int(num_passages * _PREDICATES))
        for passage in _members(rng, num_passages, num_phrases)
    ]
    passages = [_passage_text(row, triples) for row, triples in enumerate(stated)]
    text = TextOptions()
    facts = list(dict.fromkeys(text.fact_text(triple) for triples in stated for triple in triples))
    questions = tuple(f"which {_word(row)} is it?" for row in range(_QUESTIONS))
    vectors = _vectors(rng, num_phrases, len(facts), num_passages)
    texts = (*map(_phrase, range(num_phrases)), *facts, *passages, *questions)
    said = dict(zip(passages, stated, strict=True))
    indexer = Indexer(
        embedder=GoldenEmbedder(GoldenVectors(texts, vectors)),
        extractor=_StatedExtractor(said, producer=f"synthetic:{num_passages}:{seed}"),
        text=text,
    )
    return Corpus(f"synthetic {num_passages:,}", tuple(map(Document, passages)), questions, indexer)


class _StatedExtractor:
    """Gives the triples that were drawn for each passage, by its text."""

    calls_per_passage = 0

    def __init__(self, stated: Mapping[str, Sequence[Triple]], *, producer: str) -> None:
        self._stated = stated
        self.producer = producer

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        made = [
            Extraction(triples=tuple(self._stated[passage.text]), producer=self.producer)
            for passage in passages
        ]
        progress("extract", len(passages), len(passages))
        return made


def _members(rng: np.random.Generator, num_passages: int, num_phrases: int) -> list[list[int]]:
    """The phrases of each passage: some that stand in none before it, and some drawn from all."""
    first = np.linspace(0, num_phrases, num_passages + 1).astype(np.int64)
    wanted = np.diff((np.arange(num_passages + 1) * _MEMBERSHIPS).astype(np.int64))
    members: list[list[int]] = []
    for passage in range(num_passages):
        own = range(first[passage], first[passage + 1])
        # Phrase i is drawn about as often as 1 / (i + 10).
        uniform = rng.uniform(0, 1, int(wanted[passage]) - len(own))
        drawn = (10 * (((num_phrases + 10) / 10) ** uniform - 1)).astype(np.int64)
        members.append(list(dict.fromkeys([*own, *np.minimum(drawn, num_phrases - 1).tolist()])))
    return members


def _triples(
    rng: np.random.Generator, members: Sequence[int], num_phrases: int, num_predicates: int
) -> list[Triple]:
    """Nine facts that among them state every member."""
    order = rng.permutation(members).tolist()
    ends = list(zip(order[::2], order[1::2], strict=False))
    if len(order) % 2:
        ends.append((order[-1], order[0]))
    while len(ends) < _FACTS:
        first, second = rng.choice(len(order), 2, replace=False).tolist()
        ends.append((order[first], order[second]))
    predicates = rng.integers(0, num_predicates, len(ends)).tolist()
    return [
        Triple(_phrase(subject), f"{_word(num_phrases + predicate)} of", _phrase(object_))
        for (subject, object_), predicate in zip(ends, predicates, strict=True)
    ]


def _vectors(
    rng: np.random.Generator, num_phrases: int, num_facts: int, num_passages: int
) -> Float32[Tensor, "texts dim"]:
    """Unit rows of phrases, facts, passages and questions, in this order."""
    num_texts = num_phrases + num_facts + num_passages + _QUESTIONS
    rows = torch.from_numpy(rng.standard_normal((num_texts, _DIM), dtype=np.float32))
    torch.nn.functional.normalize(rows, dim=1, out=rows)
    num_groups = num_phrases // _PHRASES_PER_GROUP
    centre = torch.from_numpy(rng.standard_normal((num_groups, _DIM), dtype=np.float32))
    centre = torch.nn.functional.normalize(centre, dim=1).repeat_interleave(_GROUP, dim=0)
    grouped = torch.from_numpy(rng.permutation(num_phrases)[: num_groups * _GROUP])
    rows[grouped] = _GROUP_COSINE**0.5 * centre + (1 - _GROUP_COSINE) ** 0.5 * rows[grouped]
    asked = num_phrases + torch.from_numpy(rng.integers(0, num_facts, _QUESTIONS))
    rows[-_QUESTIONS:] += 2 * rows[asked]
    return torch.nn.functional.normalize(rows, dim=1, out=rows)


def _passage_text(row: int, triples: Sequence[Triple]) -> str:
    sentences = " ".join(f"{t.subject} {t.predicate} {t.object}." for t in triples)
    return f"{_word(row)}\n{sentences}"


def _phrase(number: int) -> str:
    return f"{_word(number)} {_word(number + 7)}"


def _word(number: int) -> str:
    """Eight letters, others for each number below 10⁸; without digits, which would forbid synonyms."""
    mixed = number * 2654435761 % 10**8
    return "".join(_SYLLABLES[mixed // 100**place % 100] for place in range(4))
