import json
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.datasets import LocalDataset
from hipporag_torch.datasets.local import Shape
from hipporag_torch.errors import DatasetError
from hipporag_torch.types import Question

MUSIQUE = {
    "id": "2hop__1_2",
    "question": "Who tuned the organ of the mill town?",
    "answer": "Ada Reed",
    "answer_aliases": ["A. Reed"],
    "paragraphs": [
        {"idx": 0, "title": "Millby", "paragraph_text": "Millby has an organ.", "is_supporting": True},
        {"idx": 1, "title": "Oxen", "paragraph_text": "Oxen pull carts.", "is_supporting": False},
    ],
}
WIKI = {
    "_id": "w1",
    "question": "Who directed the film with the red kite?",
    "answer": "Ito",
    "supporting_facts": [["Red Kite", 0], ["Ito", 0]],
    "context": [
        ["Red Kite", ["Red Kite is a film.", "Ito directed it."]],
        ["Blue Kite", ["Blue Kite is a song."]],
        ["Ito", ["Ito makes films."]],
    ],
}
HOTPOT = {
    "_id": "h1",
    "question": "Which lake is deeper?",
    "answer": "Lake Ort",
    "supporting_facts": [["Lake Ort", 0], ["Lake Ort", 1]],
    "context": [["Lake Ort", ["Lake Ort is deep.", " It is cold."]], ["Lake Ulf", ["Lake Ulf is flat."]]],
}
NQ = {
    "question": "when was the tower painted",
    "reference": ["in 1907", "1907"],
    "contexts": [
        {"title": "Tower", "text": "It was painted in 1907.", "is_supporting": True},
        {"title": "Paint", "text": "Paint dries.", "is_supporting": False},
    ],
}
POPQA = {
    "id": 41,
    "question": "What is Mo Lind's occupation?",
    "obj": "baker",
    "possible_answers": '["baker", "bread maker"]',
    "o_wiki_title": "Baker",
    "o_aliases": '["boulanger"]',
    "paragraphs": [{"title": "Mo Lind", "text": "Mo Lind bakes.", "is_supporting": True}],
}


def read(tmp_path: Path, *rows: dict[str, Any], shape: Shape = "auto") -> tuple[Question, ...]:
    (tmp_path / "corpus.json").write_text("[]")
    (tmp_path / "questions.json").write_text(json.dumps(rows))
    return LocalDataset(path=tmp_path, shape=shape).load().questions


@pytest.mark.parametrize(
    ("row", "shape", "answers", "gold"),
    [
        (MUSIQUE, "paragraphs", ("Ada Reed", "A. Reed"), ("Millby\nMillby has an organ.",)),
        (
            WIKI,
            "2wikimultihopqa",
            ("Ito",),
            ("Red Kite\nRed Kite is a film. Ito directed it.", "Ito\nIto makes films."),
        ),
        (HOTPOT, "hotpotqa", ("Lake Ort",), ("Lake Ort\nLake Ort is deep. It is cold.",)),
        (NQ, "nq_rear", ("in 1907", "1907"), ("Tower\nIt was painted in 1907.",)),
        (POPQA, "popqa", ("baker", "bread maker", "Baker", "boulanger"), ("Mo Lind\nMo Lind bakes.",)),
        ({"question": "Why?", "answers": ["so", "thus", "so"]}, "answers", ("so", "thus"), ()),
    ],
)
def test_each_shape_alone_and_detected(
    tmp_path: Path, row: dict[str, Any], shape: Shape, answers: tuple[str, ...], gold: tuple[str, ...]
) -> None:
    (stated,) = read(tmp_path, row, shape=shape)
    assert (stated.answers, stated.gold_texts) == (answers, gold)
    assert read(tmp_path, row) == (stated,)


def test_a_stated_name_fixes_the_join(tmp_path: Path) -> None:
    (spaced,) = read(tmp_path, HOTPOT, shape="2wikimultihopqa")
    assert spaced.gold_texts == ("Lake Ort\nLake Ort is deep.  It is cold.",)
    (glued,) = read(tmp_path, WIKI, shape="hotpotqa")
    assert glued.gold_texts[0] == "Red Kite\nRed Kite is a film.Ito directed it."


def test_one_stray_space_does_not_change_how_a_file_joins(tmp_path: Path) -> None:
    stray = HOTPOT | {"_id": "w2"}
    questions = read(tmp_path, WIKI, WIKI | {"_id": "w3"}, stray)
    assert questions[0].gold_texts[0] == "Red Kite\nRed Kite is a film. Ito directed it."


def test_lists_need_not_be_json_text(tmp_path: Path) -> None:
    plain = POPQA | {"possible_answers": ["baker", "bread maker"], "o_aliases": ["boulanger"]}
    assert read(tmp_path, plain) == read(tmp_path, POPQA)


def test_gold_without_a_title_is_text_alone(tmp_path: Path) -> None:
    row = NQ | {"contexts": [{"text": "Text alone.", "is_supporting": True}]}
    assert read(tmp_path, row)[0].gold_texts == ("Text alone.",)


@pytest.mark.parametrize(
    ("row", "shape", "match"),
    [
        (MUSIQUE, "nq_rear", r"row 0: there is no 'reference'; the keys are answer, answer_aliases, id"),
        (
            MUSIQUE | {"paragraphs": [{"title": "Millby", "is_supporting": True}]},
            "auto",
            r"row 0, paragraphs\[0\]: there is no 'text' or 'paragraph_text'; the keys are is_supporting",
        ),
        (
            MUSIQUE | {"paragraphs": [{"title": "Millby", "text": "x"}]},
            "auto",
            r"paragraphs\[0\]: there is no 'is_supporting'",
        ),
        (
            MUSIQUE | {"paragraphs": [{"text": "x", "is_supporting": "no"}]},
            "auto",
            r"paragraphs\[0\]: 'is_supporting' must be true or false, got str: 'no'",
        ),
        (MUSIQUE | {"paragraphs": "none"}, "auto", r"'paragraphs' must be a list of objects, got str"),
        (WIKI | {"context": [["Red Kite"]]}, "auto", r"'context' must be a list of pairs"),
        (
            WIKI | {"context": [["Red Kite", "text"]]},
            "auto",
            r"context of 'Red Kite' must be a list of sentences, got 'text'",
        ),
        (
            WIKI | {"supporting_facts": [["Green Kite", 0]]},
            "auto",
            r"supporting_facts names 'Green Kite', which is not a title in context",
        ),
        (
            POPQA | {"o_aliases": "boulanger"},
            "auto",
            r"'o_aliases' must be a list, or one written as JSON text",
        ),
        (
            POPQA | {"o_aliases": "[1]"},
            "auto",
            r"'o_aliases' must be a string or a list of strings, got list",
        ),
        (
            {"question": "Why?", "answers": {}},
            "auto",
            r"'answers' must be a string or a list of strings, got dict",
        ),
    ],
)
def test_rows_that_do_not_fit(tmp_path: Path, row: dict[str, Any], shape: Shape, match: str) -> None:
    with pytest.raises(DatasetError, match=match):
        read(tmp_path, row, shape=shape)
