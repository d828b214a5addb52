from collections.abc import Sequence

import pytest

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import ConfigError
from hipporag_torch.readers import EXTRACTIVE, ExtractiveReader, split_sentences
from hipporag_torch.types import Passage, Ranking, Source

TOWER = "The tower at Skarn was built in 1431 by Ida Lund. It leans a little. Sheep graze below it."
FERRY = "The ferry to Skarn sails twice a day. Its captain is Ole Brand."


def passage(name: str, text: str, title: str = "") -> Passage:
    metadata = {"title": title} if title else {}
    return Passage(name, f"{title}\n{text}" if title else text, (Source(name, 0, metadata),))


def ranking(question: str, passages: Sequence[Passage], scores: Sequence[float]) -> Ranking:
    return Ranking(question, tuple(passages), tuple(scores), "graph")


def reader(**options: int) -> ExtractiveReader:
    return ExtractiveReader(embedder=HashingEmbedder(dim=4096), **options)


def test_one_sentence_that_explains_the_question_answers_it():
    tower, ferry = passage("t", TOWER, "Tower"), passage("f", FERRY, "Ferry")
    asked = ranking("Who built the tower at Skarn?", [ferry, tower], [0.2, 0.1])
    answer = reader().read([asked])[0]
    assert answer.text == "The tower at Skarn was built in 1431 by Ida Lund."
    assert (answer.question, answer.citations, answer.passage_ids) == (asked.question, ("t",), ("f", "t"))
    assert answer.method == EXTRACTIVE
    assert "no language model" in EXTRACTIVE


def test_what_the_first_sentence_leaves_open_is_looked_for_in_another_passage():
    """The tower's sentence explains all but the songs, and Ida's passage does not name the tower."""
    ida = passage("i", "She wrote songs for the harvest. She feared geese.", "Ida Lund")
    asked = [
        ranking(
            "Which songs did the woman who built the tower at Skarn write?",
            [passage("t", TOWER), ida],
            [1, 1],
        ),
        ranking("Who built the tower at Skarn?", [passage("t", TOWER), ida], [1, 1]),
    ]
    open_end, closed = reader().read(asked)
    assert (open_end.text, open_end.citations) == ("She wrote songs for the harvest.", ("t", "i"))
    assert closed.citations == ("t",)


def test_without_another_passage_the_first_sentence_stays():
    asked = [ranking("Which songs are sung at the tower at Skarn?", [passage("t", TOWER)], [1.0])]
    assert reader().read(asked)[0].text == "The tower at Skarn was built in 1431 by Ida Lund."


def test_the_title_helps_to_find_a_sentence_and_is_no_part_of_it():
    asked = [
        ranking("Which animals are at the Tower of Skarn?", [passage("t", "Sheep graze.", "Tower")], [1.0])
    ]
    assert reader().read(asked)[0].text == "Sheep graze."


def test_only_the_first_passages_are_read():
    asked = [ranking("Who built the tower?", [passage("f", FERRY), passage("t", TOWER)], [0.2, 0.1])]
    answer = reader(qa_top_k=1).read(asked)[0]
    assert answer.passage_ids == ("f",)
    assert answer.citations == ("f",)


def test_nothing_to_read_is_an_empty_answer():
    nothing = Ranking("Who?", (), (), "none:empty_index")
    answer = reader().read([nothing, ranking("Who built it?", [passage("t", TOWER)], [0.0])])
    assert (answer[0].text, answer[0].citations, answer[0].score) == ("", (), 0.0)
    assert answer[1].text
    assert reader().read([]) == []


def test_at_least_one_passage_is_read():
    with pytest.raises(ConfigError, match=r"reader\.qa_top_k must be at least 1, got 0"):
        reader(qa_top_k=0)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It costs 3.5 crowns. No. 4 is dear.", ["It costs 3.5 crowns.", "No. 4 is dear."]),
        ("“Stay!” Ida said. He went.", ["“Stay!”", "Ida said.", "He went."]),
        ("塔は古い。羊がいる。", ["塔は古い。", "羊がいる。"]),
        ("First line\n\nSecond  line", ["First line", "Second line"]),
        (" \n ", []),
    ],
)
def test_sentences(text: str, sentences: list[str]):
    assert split_sentences(text) == sentences
