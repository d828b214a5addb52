"""Estimates of what questions and extractions would ask: counts are exact, tokens those of stand-ins."""

from pathlib import Path

import pytest

from hipporag_torch.chat import Usage
from hipporag_torch.costs import Typical, filter_usage, linking_usage, reading_usage, thoughts_usage
from hipporag_torch.datasets.asked import Asked, read_questions
from hipporag_torch.errors import ConfigError, DatasetError, InputError
from hipporag_torch.extractors.openie import OpenIEExtractor
from hipporag_torch.llms.metered import MeteredChatModel
from hipporag_torch.llms.scripted import ScriptedChatModel
from hipporag_torch.prompts import PromptTemplate
from hipporag_torch.types import Passage, Triple

# Tokens are words: the system's two, the labels' one each, and what the fields hold.
FILTER = PromptTemplate("f", "1", "You choose.", "Q {question} F {facts}")
LINK = PromptTemplate("l", "1", "You name.", "Q {question}")
THINK = PromptTemplate("t", "1", "You think.", "Q {question} P {passages} T {thoughts}")
READ = PromptTemplate("r", "1", "You read.", "Q {question} P {passages}")
ASKED = ["Who is it?", "Where?"]
TYPICAL = Typical.of(["one two", "one two three", "one two three four"], [Triple("a", "b", "c")])


def model(**options: int) -> ScriptedChatModel:
    return ScriptedChatModel(replies=lambda _: pytest.fail("the model was asked"), **options)


def test_typical_is_what_is_nearest_to_the_mean() -> None:
    assert TYPICAL.passage.text == "one two three"
    assert Typical.of([], []).passage.text == ""
    assert Typical.of([], []).fact.subject


def test_a_filter_is_asked_once_for_each_retrieval() -> None:
    usage = filter_usage(model(), FILTER, ASKED, TYPICAL, num_facts=2, max_tokens=7, retrievals=3)
    # A fact's line has six words: "1. a | b | c".
    assert usage == Usage(6, 3 * (2 * (2 + 2 + 12) + 3 + 1), 42)


def test_a_linker_is_asked_once_for_each_retrieval() -> None:
    usage = linking_usage(model(), LINK, ASKED, max_tokens=7, retrievals=3)
    assert usage == Usage(6, 3 * (2 * (2 + 1) + 3 + 1), 42)


def test_a_thought_comes_between_two_retrievals() -> None:
    usage = thoughts_usage(model(), THINK, ASKED, TYPICAL, num_passages=2, max_tokens=7, retrievals=3)
    plain = 2 * (2 + 3 + 6) + 3 + 1
    assert usage == Usage(4, plain + plain + 3 + 1, 28)
    none = thoughts_usage(model(), THINK, ASKED, TYPICAL, num_passages=2, max_tokens=7, retrievals=1)
    assert none == Usage()


def test_a_prompt_is_no_longer_than_the_context_leaves() -> None:
    usage = reading_usage(model(context_tokens=20), READ, ASKED, TYPICAL, num_passages=9, max_tokens=8)
    assert usage == Usage(2, 24, 16)


PASSAGES = [Passage("a", "Ada founded it."), Passage("b", " ".join(["Tove"] * 400))]


def test_an_extraction_is_two_calls_with_replies_of_full_length() -> None:
    whole = OpenIEExtractor(llm=model(), max_tokens=100).estimate(PASSAGES)
    assert (whole.calls, whole.completion_tokens) == (4, 400)
    first = OpenIEExtractor(llm=model(), max_tokens=100).estimate(PASSAGES[:1])
    # The other passage stands twice in its two prompts, and once more for its entities.
    assert whole.prompt_tokens - 2 * first.prompt_tokens == 3 * (400 - 3)


def test_what_would_be_refused_costs_nothing() -> None:
    fits = OpenIEExtractor(llm=model(context_tokens=500), max_tokens=100)
    assert fits.estimate(PASSAGES).calls == 2


def test_the_limit_of_a_reply_is_the_models_own_or_has_to_be_said() -> None:
    own = OpenIEExtractor(llm=MeteredChatModel(model=model(), max_tokens=9), max_tokens=None)
    assert own.estimate(PASSAGES[:1]).completion_tokens == 18
    with pytest.raises(ConfigError, match=r"set extractor\.max_tokens"):
        OpenIEExtractor(llm=MeteredChatModel(model=model()), max_tokens=None).estimate(PASSAGES)


def test_questions_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("\ufeffWho?\n\n  Where? \r\n", encoding="utf-8")
    assert read_questions(tmp_path / "q.txt") == [Asked("0", "Who?"), Asked("1", "Where?")]
    (tmp_path / "q.jsonl").write_text('{"question": "Who?", "id": 7}\n{"question": "Where?"}\n', "utf-8")
    assert read_questions(tmp_path / "q.jsonl") == [Asked("7", "Who?"), Asked("1", "Where?")]


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("q.txt", " \n", DatasetError, "has no questions"),
        ("q.jsonl", '{"text": "Who?"}', DatasetError, "there is no 'question'"),
        ("q.jsonl", '{"question": " "}', DatasetError, "row 0: 'question' is empty"),
        ("q.json", '[{"question": "a", "id": 1}, {"question": "b"}]', InputError, "id '1' stands twice"),
        ("q.csv", "Who?", DatasetError, "expected .json"),
    ],
)
def test_a_file_that_holds_no_questions(
    tmp_path: Path, name: str, content: str, error: type[Exception], message: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(error, match=message):
        read_questions(tmp_path / name)
