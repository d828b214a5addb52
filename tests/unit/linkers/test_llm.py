"""A question's entities by a scripted model, and once by a server."""

import json
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.chat import ChatReply, Prompt, Usage
from hipporag_torch.errors import BudgetError, ConfigError
from hipporag_torch.index import Index
from hipporag_torch.linkers import Links, LLMLinker
from hipporag_torch.linkers.resolution import row_lists
from hipporag_torch.llms.openai import OpenAIChatModel
from hipporag_torch.llms.scripted import ScriptedChatModel

from ...llm_stub import Request, Response, StubServer, completion, failure
from ...watched_model import WatchedModel
from .conftest import WatchedEmbedder, named

ASKED = "Names in this question:\n\n"


def entities(*names: Any) -> str:
    return json.dumps({"entities": names}, ensure_ascii=False)


def linked(index: Index, links: Links) -> list[list[str]]:
    return [named(index, rows) for rows in row_lists(links.phrase_idx)]


def test_the_model_sees_the_question_as_it_is(index: Index) -> None:
    model = WatchedModel(replies=lambda _: entities("Norway"))
    links = LLMLinker(llm=model, max_tokens=9).link(index, WatchedEmbedder(), ["Where is {question}?\n"])
    assert [prompt[-1].text for prompt in model.asked] == [ASKED + "Where is {question}?\n"]
    assert model.seen_max_tokens == 9
    assert model.seen_schema == {
        "type": "object",
        "properties": {"entities": {"type": "array", "items": {"type": "string"}}},
        "required": ["entities"],
        "additionalProperties": False,
    }
    assert linked(index, links) == [["norway"]]


@pytest.mark.parametrize(
    ("reply", "phrases", "dropped"),
    [
        (entities("Norway", "NORWAY", "ada vale"), ["ada vale", "norway"], {}),
        (entities("Northwind Presse"), ["northwind press"], {}),
        (entities("奥州市"), ["奥州市"], {}),
        (entities(), [], {}),
        (entities("Atlantis", "1904", "who"), [], {}),
        (entities(None, " ", "Norway"), ["norway"], {"entity:empty_part": 1, "entity:null_part": 1}),
        ('Sure:\n```json\n["Norway"]\n```', ["norway"], {}),
        (ChatReply('{"entities": ["Norway", "Ber', "length"), ["norway"], {"cut": 1}),
    ],
)
def test_what_a_reply_names(
    index: Index, reply: str | ChatReply, phrases: list[str], dropped: dict[str, int]
) -> None:
    links = LLMLinker(llm=ScriptedChatModel(replies=lambda _: reply)).link(index, WatchedEmbedder(), ["?"])
    assert linked(index, links) == [phrases]
    assert links.errors == ("",)
    assert links.dropped == (dropped,)


def test_an_error_is_that_questions_alone(index: Index) -> None:
    replies: dict[str, str | ChatReply] = {
        "a": entities("Norway"),
        "b": "no idea",
        "c": ChatReply("", "error", Usage(calls=1), "timed out"),
        "d": ChatReply("I cannot.", "refused"),
        "e": entities("Bergenn"),
    }
    model = WatchedModel(replies=lambda prompt: replies[prompt[-1].text.removeprefix(ASKED)])
    embedder = WatchedEmbedder()
    links = LLMLinker(llm=model, min_cosine=0.5).link(index, embedder, list(replies))
    assert linked(index, links) == [["norway"], [], [], [], ["bergen"]]
    assert [bool(error) for error in links.errors] == [False, True, True, True, False]
    assert "has no JSON with 'entities'" in links.errors[1]
    assert links.errors[2] == "timed out"
    assert "refused" in links.errors[3]
    assert [usage.calls for usage in links.usage] == [1, 1, 1, 1, 1]
    assert links.usage[0].completion_tokens == 2
    assert model.accepted == {0: True, 1: False, 2: False, 3: False, 4: True}
    assert embedder.calls == [("phrase", ["bergenn"])]


def test_no_question_costs_no_call(index: Index) -> None:
    model = ScriptedChatModel(replies={})
    links = LLMLinker(llm=model).link(index, WatchedEmbedder(), [])
    assert (links.phrase_idx.num_rows, links.errors, links.usage, model.calls) == (0, (), (), 0)


def test_what_concerns_all_questions_is_raised(index: Index) -> None:
    def no_money(prompt: Prompt) -> str:
        raise BudgetError("the budget is spent")

    with pytest.raises(BudgetError, match="spent"):
        LLMLinker(llm=ScriptedChatModel(replies=no_money)).link(index, WatchedEmbedder(), ["Who?"])


def test_a_prompt_of_ones_own(index: Index, tmp_path: Path) -> None:
    prompt = tmp_path / "mine.toml"
    prompt.write_text("version = '1'\nsystem = 'Name.'\nuser = '? {question}'\n", "utf-8")
    model = ScriptedChatModel(replies={"? Who?": entities("Norway")})
    links = LLMLinker(llm=model, prompt=prompt).link(index, WatchedEmbedder(), ["Who?"])
    assert linked(index, links) == [["norway"]]


def test_a_server_that_fails_for_one_question(index: Index) -> None:
    def behave(request: Request) -> Response:
        if "Bergen" in request.last:
            return failure(400, "no such thing")
        return Response(completion(entities("Northwind Press")))

    with StubServer(behave) as stub:
        llm = OpenAIChatModel(model="m", base_url=stub.url, max_retries=0)
        questions = ["Who founded Northwind Press?", "Where is Bergen?"]
        links = LLMLinker(llm=llm, max_tokens=50).link(index, WatchedEmbedder(), questions)
    assert linked(index, links) == [["northwind press"], []]
    assert links.errors[0] == ""
    assert "no such thing" in links.errors[1]
    assert links.usage[0] == Usage(calls=1, prompt_tokens=7, completion_tokens=3)
    schema = stub.requests[0].body["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["entities"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": "nonsense"}, "there is no prompt 'nonsense'"),
        ({"prompt": "filter"}, r"linker\.prompt=filter has the fields facts, question; expected question"),
        ({"max_tokens": 0}, r"linker\.max_tokens must be at least 1, got 0"),
        ({"min_cosine": 2.0}, r"linker\.min_cosine must be above 0 and at most 1, got 2\.0"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LLMLinker(llm=ScriptedChatModel(replies={}), **options)
