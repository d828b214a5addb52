import os
from pathlib import Path

import pytest

from hipporag_torch.datasets import LocalDataset
from hipporag_torch.evaluation import check_gold
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Dataset, Document, Question

SHARED = Path(os.environ.get("HIPPORAG_SHARED", Path(__file__).resolve().parents[3].parent / "shared"))
DOCUMENTS = (
    Document("Ulm\nUlm lies on the Danube.", metadata={"title": "Ulm"}),
    Document("Danube\nThe Danube is long.", metadata={"title": "Danube"}),
)


def dataset(*gold: tuple[str, ...]) -> Dataset:
    questions = (Question(str(i), f"Question {i}?", gold_texts=texts) for i, texts in enumerate(gold))
    return Dataset("rivers", DOCUMENTS, tuple(questions))


def test_nothing_to_warn_of() -> None:
    coverage = check_gold(dataset(("Ulm\nUlm lies on the Danube.",)), TextOptions())
    assert (coverage.passages, coverage.absent, coverage.message) == (1, 0, "")


@pytest.mark.parametrize("content_id", ["sha256", "md5"])
def test_gold_given_as_text_only(content_id: str) -> None:
    options = TextOptions(content_id=content_id)  # pyright: ignore[reportArgumentType]
    body = "Ulm lies on the Danube."
    coverage = check_gold(dataset((body, "Danube\nThe Danube is long."), (body,), ()), options)
    assert (coverage.passages, coverage.absent, coverage.questions_with_absent) == (3, 2, 2)
    assert (coverage.text_only, coverage.questions_without_gold, coverage.example) == (2, 1, body)
    assert coverage.message == (
        "1 of 3 questions have no gold passages; they are left out of recall and MRR. "
        "2 of 3 gold passages are not in the corpus (2 of 3 questions); recall cannot reach 1; "
        "likely cause: gold given as text only while the corpus holds title + newline + text (true of 2). "
        "Such as 'Ulm lies on the Danube.'"
    )


def test_gold_from_another_version() -> None:
    message = check_gold(dataset(("Ulm\nUlm lies on the Iller.",)), TextOptions()).message
    assert "gold and corpus differ in wording, whitespace or title" in message
    assert "text only" not in message


@pytest.mark.parametrize("strip", [False, True])
def test_the_shared_set(strip: bool) -> None:
    path = SHARED / "data" / "musique_train"
    if not path.is_dir():
        pytest.skip(f"no shared data at {path}; set HIPPORAG_SHARED")
    whole = LocalDataset(path=path).load()
    if strip:
        questions = (
            Question(q.id, q.text, q.answers, tuple(text.split("\n", 1)[1] for text in q.gold_texts))
            for q in whole.questions
        )
        whole = Dataset(whole.name, whole.documents, tuple(questions))
    coverage = check_gold(whole, TextOptions())
    expected = (237, 237, 100) if strip else (0, 0, 0)
    assert coverage.passages == 237
    assert (coverage.absent, coverage.text_only, coverage.questions_with_absent) == expected
