"""Rows as the hub's files have them, one data set of each shape, with what they should be read as."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPO = "osunlp/HippoRAG_2"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
LATER = "fedcba9876543210fedcba9876543210fedcba98"

CORPUS = [
    {"title": "Red Kite", "text": "Red Kite is a film. Ito directed it.", "idx": 0},
    {"title": "Ito", "text": "Ito was born on 1 May 1950.", "idx": 1},
    {"title": "", "text": "A passage without a title.", "idx": 2},
]
RED_KITE = "Red Kite\nRed Kite is a film. Ito directed it."
ITO = "Ito\nIto was born on 1 May 1950."


@dataclass(frozen=True)
class Case:
    """A data set's question rows, and what the first of them says."""

    shape: str
    questions: list[dict[str, Any]]
    answers: tuple[str, ...]
    gold: tuple[str, ...]


def _supporting(text: str, **more: Any) -> list[dict[str, Any]]:
    return [
        {"title": "Red Kite", text: "Red Kite is a film. Ito directed it.", "is_supporting": True, **more},
        {"title": "Blue Kite", text: "Blue Kite is a song.", "is_supporting": False, **more},
    ]


CASES = {
    "musique": Case(
        "paragraphs",
        [
            {
                "id": "2hop__1_2",
                "paragraphs": _supporting("paragraph_text", idx=0),
                "question": "Who directed Red Kite?",
                "answer": "Ito",
                "answer_aliases": [],
                "answerable": True,
                # Two rows of one file need not have the same keys, nor one key the same type.
                "question_decomposition": [{"id": 1, "answer": "Ito", "paragraph_support_idx": None}],
            },
            {"id": "3hop1__1", "paragraphs": [], "question": "When?", "answer": "1950-05-01"},
        ],
        ("Ito",),
        (RED_KITE,),
    ),
    "2wikimultihopqa": Case(
        "2wikimultihopqa",
        [
            {
                "_id": "w1",
                "type": "compositional",
                "question": "When was the director of Red Kite born?",
                "context": [
                    ["Red Kite", ["Red Kite is a film.", "Ito directed it."]],
                    ["Blue Kite", ["Blue Kite is a song."]],
                    ["Ito", ["Ito was born on 1 May 1950."]],
                ],
                "supporting_facts": [["Red Kite", 1], ["Ito", 0]],
                "evidences": [["Red Kite", "director", "Ito"]],
                "answer": "1950-05-01",
            }
        ],
        ("1950-05-01",),
        (RED_KITE, ITO),
    ),
    "hotpotqa": Case(
        "hotpotqa",
        [
            {
                "supporting_facts": [["Red Kite", 0]],
                "level": "easy",
                "question": "Is Red Kite a film?",
                "context": [
                    ["Red Kite", ["Red Kite is a film.", " Ito directed it."]],
                    ["Blue Kite", ["Blue Kite is a song."]],
                ],
                "answer": "yes",
                "_id": "5a77ec115542992a6e59dff7",
                "type": "bridge",
            }
        ],
        ("yes",),
        (RED_KITE,),
    ),
    "nq_rear": Case(
        "nq_rear",
        [
            {
                "question": "who directed red kite",
                "reference": ["Ito", "Mr Ito"],
                "contexts": _supporting("text"),
            }
        ],
        ("Ito", "Mr Ito"),
        (RED_KITE,),
    ),
    "popqa": Case(
        "popqa",
        [
            {
                "id": 4222362,
                "question": "Who was the director of Red Kite?",
                "obj": "Ito",
                "possible_answers": '["Ito", "Mr Ito"]',
                "o_wiki_title": "Ito (director)",
                "o_aliases": "[]",
                "paragraphs": _supporting("text"),
            }
        ],
        ("Ito", "Mr Ito", "Ito (director)"),
        (RED_KITE,),
    ),
    "lveval": Case(
        "answers",
        [{"question": "Who?", "context": "### Passage 1\nRed Kite", "answers": ["Ito"], "length": 9}],
        ("Ito",),
        (),
    ),
    "narrativeqa": Case(
        "answers",
        [
            {
                "document": {"id": "d1", "text": "Red Kite is a film."},
                "question": "Who?",
                "answer": ["Ito", "Ito."],
            }
        ],
        ("Ito", "Ito."),
        (),
    ),
}


def write_files(folder: Path, name: str, stem: str | None = None) -> None:
    """The question and the corpus file of a data set, as the hub has them."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = stem or name
    (folder / f"{stem}.json").write_text(json.dumps(CASES[name].questions), encoding="utf-8")
    (folder / f"{stem}_corpus.json").write_text(json.dumps(CORPUS), encoding="utf-8")


def cache_folder(cache: Path, repo: str = REPO) -> Path:
    return cache / f"datasets--{repo.replace('/', '--')}"


def cached_snapshot(cache: Path, *, commit: str = COMMIT, ref: str | None = "main") -> Path:
    """The folder of a commit in a hub cache, with the branch that names it; none for `ref` None."""
    repository = cache_folder(cache)
    if ref is not None:
        (repository / "refs").mkdir(parents=True, exist_ok=True)
        (repository / "refs" / ref).write_text(commit)
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True, exist_ok=True)
    return snapshot
