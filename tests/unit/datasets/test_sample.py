import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.config import build_dataset, build_memory, compose
from hipporag_torch.datasets.sample import sample_dataset, sample_folder
from hipporag_torch.evaluation import evaluate
from hipporag_torch.extractors.sample import sample_triples
from hipporag_torch.types import Passage


def read(name: str) -> Any:
    return json.loads((sample_folder() / f"{name}.json").read_text(encoding="utf-8"))


CORPUS = read("corpus")
QUESTIONS = read("questions")
DOCS = read("triples")["docs"]
TEXTS = [f"{row['title']}\n{row['text']}" for row in CORPUS]


def test_counts() -> None:
    dataset = sample_dataset().load()
    assert dataset.name == "sample"
    assert len(dataset.documents) == len(CORPUS) >= 60
    assert len(dataset.questions) == len(QUESTIONS) >= 25
    assert len(sample_dataset(limit=3).load().questions) == 3


def test_ids_are_unique_and_count_the_rows() -> None:
    assert [row["idx"] for row in CORPUS] == list(range(len(CORPUS)))
    assert [doc["idx"] for doc in DOCS] == list(range(len(CORPUS)))
    assert len({row["id"] for row in QUESTIONS}) == len(QUESTIONS)


def test_no_passage_and_no_question_stands_twice() -> None:
    assert len({row["title"] for row in CORPUS}) == len(CORPUS)
    assert len({row["text"] for row in CORPUS}) == len(CORPUS)
    assert len({row["question"] for row in QUESTIONS}) == len(QUESTIONS)


def test_passages_are_short() -> None:
    assert [row["title"] for row in CORPUS if not 40 <= len(row["text"].split()) <= 90] == []


@pytest.mark.parametrize("row", QUESTIONS, ids=lambda row: row["id"])
def test_gold_is_of_the_corpus_and_holds_the_answer(row: dict[str, Any]) -> None:
    gold = row["paragraphs"]
    assert 2 <= len(gold) <= 4
    assert len({paragraph["idx"] for paragraph in gold}) == len(gold)
    for paragraph in gold:
        assert paragraph == {**CORPUS[paragraph["idx"]], "is_supporting": True}
    texts = [TEXTS[paragraph["idx"]].casefold() for paragraph in gold]
    assert row["answer"]
    for answer in row["answer"]:
        assert answer in ("yes", "no") or any(answer.casefold() in text for text in texts)


def test_every_passage_has_an_extraction_that_is_taken_whole() -> None:
    passages = [Passage(f"p{number}", text) for number, text in enumerate(TEXTS)]
    for doc, extraction in zip(DOCS, sample_triples().extract(passages), strict=True):
        assert extraction.status == "ok"
        assert not extraction.dropped
        assert [[*triple] for triple in doc["extracted_triples"]] == [
            [triple.subject, triple.predicate, triple.object] for triple in extraction.triples
        ]
        assert 5 <= len(extraction.triples) <= 9


@pytest.mark.parametrize("doc", DOCS, ids=lambda doc: str(doc["idx"]))
def test_triples_and_entities_speak_of_what_stands_in_the_passage(doc: dict[str, Any]) -> None:
    assert doc["passage"] == TEXTS[doc["idx"]]
    ends = [end for subject, _, object_ in doc["extracted_triples"] for end in (subject, object_)]
    assert [text for text in (*ends, *doc["extracted_entities"]) if text not in doc["passage"]] == []
    triples = [tuple(triple) for triple in doc["extracted_triples"]]
    assert len(set(triples)) == len(triples)


@pytest.mark.parametrize("script", ["GEORGIAN", "ARABIC", "CJK UNIFIED", "GREEK", "CYRILLIC"])
def test_names_stand_in_their_scripts(script: str) -> None:
    def has(text: str) -> bool:
        return any(unicodedata.name(char, "").startswith(script) for char in text)

    assert sum(map(has, TEXTS)) >= 2
    assert any(has(subject) for doc in DOCS for subject, _, _ in doc["extracted_triples"])


@pytest.mark.slow
def test_the_graph_finds_what_vectors_and_words_miss(tmp_path: Path) -> None:
    recall = {}
    for retriever in ("hipporag", "dense", "bm25"):
        cfg = compose(
            "evaluate",
            [
                "dataset=sample",
                "extractor=sample",
                "embedder=minilm",
                f"retriever={retriever}",
                f"runtime.cache_dir={tmp_path}",
                "runtime.device=cpu",
            ],
        )
        memory, dataset = build_memory(cfg), build_dataset(cfg).load()
        report = memory.add(dataset.documents)
        assert not report.failed
        assert not report.truncated
        assert not report.dropped
        evaluation = evaluate(dataset, memory.retriever, text=memory.index.text, ks=[5], top_k=5)
        recall[retriever] = evaluation.metrics["recall@5"]
    assert recall["hipporag"] >= 0.95
    assert recall["dense"] <= recall["hipporag"] - 0.1
    assert recall["bm25"] < recall["hipporag"]
