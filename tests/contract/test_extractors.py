"""What every extractor must do, whichever it is."""

import json
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from hipporag_torch.extractors.none import NoExtractor
from hipporag_torch.extractors.sentences import SentencesExtractor
from hipporag_torch.extractors.spacy import SpacyExtractor
from hipporag_torch.extractors.stored import StoredExtractor
from hipporag_torch.protocols import Extractor
from hipporag_torch.types import ExtractionStatus, Passage

TEXTS = [
    "Ada Vale founded Northwind Press.",
    "Rye bread.",
    "北京位于中国。",
    "Not in the file.",
    "Ada Vale left Bergen.",
]
DOCS = [
    {"passage": TEXTS[2], "extracted_entities": ["北京"], "extracted_triples": [["北京", "位于", "中国"]]},
    {"passage": TEXTS[1], "extracted_entities": [], "extracted_triples": [["rye", None, "bread"], "no"]},
    {"passage": TEXTS[0], "extracted_entities": ["Ada Vale"], "extracted_triples": [["Ada", "is", "a"]]},
    {"passage": TEXTS[4], "extracted_sentences": [[TEXTS[4], ["Ada Vale", "Bergen"]], ["", []]]},
]


@cache
def spacy_extractor() -> SpacyExtractor:
    """One for all tests: its pipeline takes a second to load."""
    return SpacyExtractor()


@cache
def sentences_extractor() -> SentencesExtractor:
    return SentencesExtractor()


@pytest.fixture(params=["stored", "none", "spacy", "sentences"])
def extractor(request: pytest.FixtureRequest, tmp_path: Path) -> Extractor:
    if request.param == "none":
        return NoExtractor()
    if request.param == "spacy":
        return spacy_extractor()
    if request.param == "sentences":
        return sentences_extractor()
    path = tmp_path / "openie.json"
    path.write_text(json.dumps({"docs": DOCS}), encoding="utf-8")
    return StoredExtractor(path=path)


def passages(*texts: str) -> list[Passage]:
    return [Passage(f"id-{number}", text) for number, text in enumerate(texts)]


def test_one_extraction_per_passage_in_order(extractor: Extractor) -> None:
    together = extractor.extract(passages(*TEXTS))
    assert together == [extractor.extract(passages(text))[0] for text in TEXTS]
    assert extractor.extract(passages(*reversed(TEXTS))) == together[::-1]


def test_record_shape(extractor: Extractor) -> None:
    for extraction in extractor.extract(passages(*TEXTS)):
        assert extraction.status in get_args(ExtractionStatus)
        assert extraction.producer == extractor.producer != ""
        assert (extraction.status == "failed") == bool(extraction.reason)
        assert extraction.status != "failed" or not (extraction.triples or extraction.sentences)
        assert all(count > 0 for count in extraction.dropped.values())
        parts = [part for triple in extraction.triples for part in triple.parts]
        parts += [part for sentence, names in extraction.sentences for part in (*sentence.parts, *names)]
        assert all(isinstance(part, str) and part.strip() for part in [*parts, *extraction.entities])
        assert all(len(names) == len(set(names)) for _, names in extraction.sentences)


def test_no_passages(extractor: Extractor) -> None:
    assert extractor.extract([]) == []


def test_what_it_costs_is_a_number_of_calls(extractor: Extractor) -> None:
    assert type(extractor.calls_per_passage) is int
    assert extractor.calls_per_passage >= 0


def test_same_passage_twice(extractor: Extractor) -> None:
    first, second = extractor.extract(passages(TEXTS[0], TEXTS[0]))
    assert first == second


def test_progress_never_runs_backwards_or_over(extractor: Extractor) -> None:
    steps: list[tuple[int, int]] = []
    extractor.extract(passages(*TEXTS), lambda stage, done, total: steps.append((done, total)))
    assert steps == sorted(steps)
    assert all(0 <= done <= total == len(TEXTS) for done, total in steps)
