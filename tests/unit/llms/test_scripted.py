"""The chat model that answers from a table, a function or a file of rules."""

import json
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.chat import ChatReply, Message, Prompt, Usage
from hipporag_torch.errors import ConfigError
from hipporag_torch.llms.scripted import ScriptedChatModel


def user(text: str) -> Prompt:
    return (Message("user", "an example"), Message("assistant", "its answer"), Message("user", text))


def texts(chat: ScriptedChatModel, *asked: str) -> list[str]:
    return [reply.text for reply in chat.reply([user(text) for text in asked])]


def rules(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "replies.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def test_a_table_answers_the_last_user_message():
    chat = ScriptedChatModel(replies={"Who?": "Ada Lovelace."})
    assert chat.reply([user("Who?")]) == [ChatReply("Ada Lovelace.", "stop", Usage(1, 5, 2))]
    (missing,) = chat.reply([user("Why?")])
    assert (missing.finish, missing.permanent, missing.usage) == ("error", True, Usage())
    assert missing.error == "no scripted reply fits 'Why?'"
    assert chat.calls == 2
    assert chat.asked == [user("Who?"), user("Why?")]


def test_a_function_answers_with_what_it_wants():
    def answer(prompt: Prompt) -> str | ChatReply:
        if prompt[-1].text == "fail":
            return ChatReply("", "error", error="on command")
        if prompt[-1].text == "raise":
            raise ConfigError("for all")
        return prompt[-1].text.upper()

    chat = ScriptedChatModel(replies=answer)
    loud, failed = chat.reply([user("a b"), user("fail")])
    assert (loud.text, loud.usage.completion_tokens) == ("A B", 2)
    assert failed.error == "on command"
    with pytest.raises(ConfigError, match="for all"):
        chat.reply([user("raise")])


def test_the_first_rule_that_fits_answers(tmp_path: Path):
    path = rules(
        tmp_path,
        [
            {"equals": "Oslo", "reply": "exactly"},
            {"contains": ["Oslo", "triples"], "reply": {"triples": [["Øslo", "in", "Norway"]]}},
            {"contains": "Oslo", "reply": "Oslo it is"},
            {"reply": "anything"},
        ],
    )
    chat = ScriptedChatModel(replies=str(path))
    assert texts(chat, "Oslo", "triples of Oslo", "in Oslo", "Rome") == [
        "exactly",
        '{"triples": [["Øslo", "in", "Norway"]]}',
        "Oslo it is",
        "anything",
    ]


def test_a_rule_may_answer_only_so_often(tmp_path: Path):
    path = rules(
        tmp_path,
        [
            {"contains": "a", "error": "500", "times": 2},
            {"contains": "a", "reply": '{"cut', "finish": "length", "times": 1},
            {"contains": "a", "error": "too long", "permanent": True, "times": 1},
            {"contains": "a", "reply": "no", "finish": "refused", "times": 1},
            {"reply": "good"},
        ],
    )
    replies = ScriptedChatModel(replies=path).reply([user("a")] * 6)
    assert [reply.finish for reply in replies] == ["error", "error", "length", "error", "refused", "stop"]
    assert [reply.permanent for reply in replies] == [False, False, False, True, False, False]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read"),
        ({"a": "b"}, "must hold a list of rules, got dict"),
        (["a"], "rule 0 of .* must be an object"),
        ([{"reply": "a"}, {"replies": "b"}], "rule 1 of .* unknown keys replies; known are contains"),
        ([{"contains": "a"}], "either a reply or an error"),
        ([{"reply": "a", "error": "b"}], "either a reply or an error"),
        ([{"contains": [1], "reply": "a"}], "contains a text or a list of texts"),
        ([{"reply": "a", "times": 0}], "times must be a whole number, at least 1"),
        ([{"reply": "a", "finish": "error"}], "finish must be stop, length or refused"),
    ],
)
def test_a_file_that_holds_no_rules(tmp_path: Path, content: Any, said: str):
    with pytest.raises(ConfigError, match=said):
        ScriptedChatModel(replies=rules(tmp_path, content))


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"llm\.replies must be a JSON file of rules"):
        ScriptedChatModel(replies=tmp_path / "none.json")


def test_another_table_is_another_identity(tmp_path: Path):
    one, other = rules(tmp_path, [{"reply": "a"}]), tmp_path / "other.json"
    other.write_text('[{"reply": "b"}]')
    identities = {
        ScriptedChatModel(replies=replies).identity for replies in ({"a": "b"}, {"a": "c"}, one, other)
    }
    assert len(identities) == 4
    assert ScriptedChatModel(replies={"a": "b"}).identity in identities


def test_a_context_and_a_limit_as_real_models_have():
    chat = ScriptedChatModel(replies=lambda _: "one  two three", context_tokens=6)
    short, long = chat.reply([user("a b"), user("a b c")], max_tokens=2)
    assert (short.text, short.finish, short.usage.completion_tokens) == ("one  two", "length", 2)
    assert (long.finish, long.permanent) == ("error", True)
    assert "7 words, more than the context of 6" in long.error


def test_a_stream_comes_word_by_word():
    pieces: list[str] = []
    reply = ScriptedChatModel(replies=lambda _: " one\ntwo  three ").stream(user("a"), pieces.append)
    assert pieces == [" one", "\ntwo", "  three "]
    assert reply.text == "".join(pieces)
