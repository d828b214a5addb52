"""Names by their capitals: exact spans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.linkers.capitalised import MAX_WORDS, capitalised_spans


@pytest.mark.parametrize(
    ("question", "spans"),
    [
        ("Who founded Oslo?", ["Oslo"]),
        ("Is Ada Vale from New York, Bergen or Oslo?", ["Ada Vale", "New York", "Bergen", "Oslo"]),
        ("Ada Vale lives. Bob as well; Where is Ada Vale?", ["Ada Vale", "Bob"]),
        ("Where is Ada Vale's Northwind Press?", ["Ada Vale", "Northwind Press"]),
        (
            "Did J. K. Rowling see St. Louis with Apollo 11 in 1956?",
            ["J. K. Rowling", "St. Louis", "Apollo 11"],
        ),
        ("Who wrote “Crime and Punishment” and The Trial?", ["Crime", "Punishment", "Trial"]),
        ("Does Marks & Spencer sell O'Brien-Smith goods?", ["Marks & Spencer", "O'Brien-Smith"]),
        ("What's on in Łódź, Éva?", ["Łódź", "Éva"]),
        ("Ποιος ίδρυσε το Όσλο;", ["Ποιος", "Όσλο"]),
        ("NASAの本部はどこ？", ["NASA"]),
        ("2Pac and 3M", ["2Pac", "3M"]),
        ("Oslo", ["Oslo"]),
    ],
)
def test_runs_of_capitalised_words(question: str, spans: list[str]) -> None:
    assert capitalised_spans(question) == spans


@pytest.mark.parametrize(
    "question",
    [
        "",
        "who founded oslo?",
        "1956",
        "What is it? Where? Did I? Is The Who it?",
        "北京位于哪里？",
        "এটা কোথায়?",
        "I'm what?",
    ],
)
def test_questions_without_capitals_or_with_those_of_stop_words_alone(question: str) -> None:
    assert capitalised_spans(question) == []


def test_capitals_that_every_letter_has_say_nothing() -> None:
    assert capitalised_spans("WHO FOUNDED OSLO IN 1048?") == []
    assert capitalised_spans("who founded OSLO in 1048?") == ["OSLO"]


def test_a_heading_is_no_name() -> None:
    assert capitalised_spans("Who Founded Northwind Press?") == ["Founded Northwind Press"]
    assert capitalised_spans("Who Founded The Northwind Press In The City Of Bergen?") == []
    assert capitalised_spans("Oslo " * 5000) == []


@given(st.text(st.sampled_from("AbÉéI1 .,'’-&?の京") | st.characters(), max_size=60))
def test_spans_stand_in_the_question_and_are_never_long(question: str) -> None:
    spans = capitalised_spans(question)
    assert len(set(spans)) == len(spans)
    for span in spans:
        assert span in question
        assert any(map(str.isalpha, span))
        assert len(span.replace("&", " ").split()) <= MAX_WORDS
