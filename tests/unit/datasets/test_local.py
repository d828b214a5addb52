import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.datasets import LocalDataset
from hipporag_torch.errors import ConfigError, DatasetError

SHARED = Path(os.environ.get("HIPPORAG_SHARED", Path(__file__).resolve().parents[3].parent / "shared"))

CORPUS = [
    {"title": "Ulm", "text": "Ulm lies on the Danube.", "idx": 0},
    {"title": "Danube", "text": "The Danube ends in the Black Sea.", "idx": 1},
    {"text": "A note without a title.", "idx": 2},
]
QUESTIONS = [
    {
        "id": "q1",
        "question": "Into which sea does the river of Ulm flow?",
        "answer": "the Black Sea",
        "answer_aliases": ["Black Sea", "the Black Sea", ""],
        "paragraphs": [
            {"title": "Ulm", "text": "Ulm lies on the Danube.", "is_supporting": True},
            {"title": "Rhine", "text": "The Rhine is not asked for.", "is_supporting": False},
            {"title": "Danube", "paragraph_text": "The Danube ends in the Black Sea.", "is_supporting": True},
            {"title": "Ulm", "text": "Ulm lies on the Danube.", "is_supporting": True},
        ],
    },
    {"_id": 7, "question": "Where is Ulm?", "answer": ["Germany"], "paragraphs": []},
    {"question": "And Bonn?", "answer": "Germany", "paragraphs": []},
]

Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    def write(corpus: Any = CORPUS, questions: Any = QUESTIONS) -> Path:
        for name, value in (("corpus.json", corpus), ("questions.json", questions)):
            (tmp_path / name).write_text(json.dumps(value), encoding="utf-8")
        return tmp_path

    return write


def test_reads_corpus_questions_answers_and_gold(folder: Folder) -> None:
    dataset = LocalDataset(path=folder()).load()
    assert dataset.name == folder().name
    assert [document.text for document in dataset.documents] == [
        "Ulm\nUlm lies on the Danube.",
        "Danube\nThe Danube ends in the Black Sea.",
        "A note without a title.",
    ]
    assert [dict(document.metadata) for document in dataset.documents] == [
        {"title": "Ulm"},
        {"title": "Danube"},
        {},
    ]
    first, second, third = dataset.questions
    assert first.answers == ("the Black Sea", "Black Sea")
    assert first.gold_texts == ("Ulm\nUlm lies on the Danube.", "Danube\nThe Danube ends in the Black Sea.")
    assert (first.id, second.id, third.id) == ("q1", "7", "2")
    assert second.answers == ("Germany",)
    assert second.gold_texts == ()


def test_names_and_limit(folder: Folder) -> None:
    dataset = LocalDataset(path=str(folder()), name="rivers", limit=2).load()
    assert dataset.name == "rivers"
    assert len(dataset.questions) == 2
    assert len(dataset.documents) == 3


def test_jsonl_with_odd_line_separators_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text(
        '\ufeff{"title": "A", "text": "one\u2028two"}\r\n\n{"text": "three"}', encoding="utf-8"
    )
    (tmp_path / "q.jsonl").write_text('{"question": "Who?", "answers": ["A"]}\n', encoding="utf-8")
    dataset = LocalDataset(path=tmp_path, corpus="c.jsonl", questions="q.jsonl").load()
    assert [document.text for document in dataset.documents] == ["A\none\u2028two", "three"]
    assert dataset.questions[0].answers == ("A",)


def test_files_named_as_hipporag_names_them(tmp_path: Path) -> None:
    (tmp_path / "rivers.json").write_text(json.dumps(QUESTIONS), encoding="utf-8")
    (tmp_path / "rivers_corpus.json").write_text(json.dumps(CORPUS), encoding="utf-8")
    dataset = LocalDataset(path=tmp_path, corpus="rivers_corpus.json", questions="rivers.json").load()
    assert (len(dataset.documents), len(dataset.questions)) == (3, 3)


def test_an_empty_corpus_is_allowed(folder: Folder) -> None:
    dataset = LocalDataset(path=folder(corpus=[])).load()
    assert dataset.documents == ()
    assert len(dataset.questions) == 3


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_out_of_range(limit: int) -> None:
    with pytest.raises(ConfigError, match=r"limit must be at least 1, or null .* got"):
        LocalDataset(path=".", limit=limit)


def test_unknown_shape() -> None:
    with pytest.raises(ConfigError, match=r"shape must be one of auto, paragraphs, .* got 'squad'"):
        LocalDataset(path=".", shape="squad")  # pyright: ignore[reportArgumentType]


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError, match=r"no folder .*nowhere.* corpus\.json and questions\.json.*dataset\.path"
    ):
        LocalDataset(path=tmp_path / "nowhere").load()


def test_missing_file_lists_what_is_there(tmp_path: Path) -> None:
    for name in ("rivers.json", "corpus.json", "readme.md"):
        (tmp_path / name).write_text("[]")
    with pytest.raises(
        DatasetError,
        match=r"has no questions\.json; its data files are corpus\.json, rivers\.json\. Set .*questions",
    ):
        LocalDataset(path=tmp_path).load()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[{", r"questions\.json is not valid JSON: .*line 1"),
        ('{"data": []}', r"questions\.json must hold a list of objects, got dict"),
        ("[1]", r"questions\.json, row 0: expected an object, got int: 1"),
        ("[]", r"questions\.json has no questions"),
        ('[{"question": "Who?"}]', r"row 0: no known question shape has just the keys question;"),
        ('[{"answer": "me"}]', r"row 0: there is no 'question'; the keys are answer\. "),
        ('[{"question": " ", "answer": "me"}]', r"row 0: 'question' is empty"),
        ('[{"question": "\\ud800", "answer": "me"}]', r"row 0: 'question' holds an unpaired surrogate"),
        (
            '[{"question": "Who?", "answer": 3}]',
            r"'answer' must be a string or a list of strings, got int: 3",
        ),
        ('[{"id": null, "question": "Who?", "answer": "me"}]', r"'id' must be a string, got NoneType"),
    ],
)
def test_bad_question_files(folder: Folder, text: str, match: str) -> None:
    path = folder()
    (path / "questions.json").write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=match):
        LocalDataset(path=path).load()


def test_bad_line_of_a_jsonl_file(folder: Folder) -> None:
    path = folder()
    (path / "q.jsonl").write_text('{"question": "Who?", "answer": "me"}\n{"question"\n', encoding="utf-8")
    with pytest.raises(DatasetError, match=r"q\.jsonl, line 2 is not valid JSON"):
        LocalDataset(path=path, questions="q.jsonl").load()


def test_bad_encoding_and_bad_suffix(folder: Folder) -> None:
    path = folder()
    (path / "latin.json").write_bytes(b'["\xe9"]')
    with pytest.raises(DatasetError, match=r"latin\.json is not UTF-8: .* at byte 2"):
        LocalDataset(path=path, corpus="latin.json").load()
    (path / "corpus.csv").write_text("a,b")
    with pytest.raises(
        DatasetError, match=r"corpus\.csv ends in '\.csv'; expected \.json .* \.jsonl .* or \.parquet"
    ):
        LocalDataset(path=path, corpus="corpus.csv").load()


@pytest.mark.parametrize(
    ("row", "match"),
    [
        ({"title": "Ulm"}, r"corpus\.json, row 1: there is no 'text'; the keys are title\."),
        ({"title": 3, "text": "x"}, r"row 1: 'title' must be a string, got int: 3"),
        ({"text": "  "}, r"row 1: a document's text is empty"),
    ],
)
def test_bad_corpus_rows(folder: Folder, row: dict[str, Any], match: str) -> None:
    with pytest.raises(DatasetError, match=match):
        LocalDataset(path=folder(corpus=[CORPUS[0], row])).load()


def test_duplicate_question_ids(folder: Folder) -> None:
    twice = [QUESTIONS[0], QUESTIONS[1], QUESTIONS[0]]
    with pytest.raises(DatasetError, match=r"row 2: question id 'q1' is taken by row 0"):
        LocalDataset(path=folder(questions=twice)).load()
    assert len(LocalDataset(path=folder(questions=twice), limit=2).load().questions) == 2


@pytest.mark.parametrize(
    ("name", "documents", "questions", "gold"),
    [
        ("musique_train", 1890, 100, 237),
        ("ci_fixture_musique", 130, 12, 34),
        ("2wiki_1000", 6119, 1000, 2465),
        ("hotpotqa_train500", 4925, 500, 1000),
    ],
)
def test_the_shared_sets(name: str, documents: int, questions: int, gold: int) -> None:
    path = SHARED / "data" / name
    if not path.is_dir():
        pytest.skip(f"no shared data at {path}; set HIPPORAG_SHARED")
    dataset = LocalDataset(path=path).load()
    assert (len(dataset.documents), len(dataset.questions)) == (documents, questions)
    corpus = {document.text for document in dataset.documents}
    assert all(corpus.issuperset(question.gold_texts) for question in dataset.questions)
    assert all(question.answers and question.gold_texts for question in dataset.questions)
    assert sum(len(question.gold_texts) for question in dataset.questions) == gold


def test_the_japanese_shared_set() -> None:
    path = SHARED / "data" / "jemhopqa_ja"
    if not path.is_dir():
        pytest.skip(f"no shared data at {path}; set HIPPORAG_SHARED")
    dataset = LocalDataset(path=path, corpus="corpus_derived.json", questions="questions_dev.json").load()
    assert (len(dataset.documents), len(dataset.questions)) == (1261, 120)
