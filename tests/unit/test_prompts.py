import json
import re
from pathlib import Path

import pytest

from hipporag_torch.chat import Message
from hipporag_torch.errors import ConfigError
from hipporag_torch.extractors.triples import ENTITIES, TRIPLES
from hipporag_torch.prompts import READER_PROMPTS, load_prompt, prompt_names
from hipporag_torch.replies import Wanted, parse_json_reply

FIELDS = {
    "entities": {"passage"},
    "filter": {"question", "facts"},
    "ircot": {"question", "passages", "thoughts"},
    "question_entities": {"question"},
    "reader": {"question", "passages"},
    "reader_long": {"question", "passages"},
    "reader_multihop": {"question", "passages"},
    "reader_narrative": {"question", "passages"},
    "reader_simple": {"question", "passages"},
    "triples": {"passage", "entities"},
}
OWN = """
version = "7"
system = '''
Say it.'''
user = '''{text} {entities} {"json": 1}'''
[[examples]]
text = '''{entities}'''
entities = "e"
reply = "r"
"""


def replies(name: str) -> list[str]:
    return [reply for _, reply in load_prompt(name).examples]


def test_names_and_fields() -> None:
    assert {name: set(load_prompt(name).fields) for name in prompt_names()} == FIELDS
    assert set(READER_PROMPTS.values()) == {name for name in FIELDS if name.startswith("reader")}


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_every_prompt_is_whole(name: str) -> None:
    prompt = load_prompt(name)
    assert prompt.label == f"{name}-{prompt.version}-{prompt.digest[:8]}"
    assert re.fullmatch(r"[0-9]+", prompt.version)
    assert len(prompt.examples) == (2 if name in ("filter", "ircot", "question_entities") else 1)
    turns = prompt.messages(**dict.fromkeys(prompt.fields, "x"))
    roles = ["system", *["user", "assistant"] * len(prompt.examples), "user"]
    assert [turn.role for turn in turns] == roles
    assert all(
        turn.text == turn.text.strip("\n ") and turn.text for turn in turns[:-1] if turn.role != "user"
    )
    assert not re.search(r"\{[a-z_]+\}", "".join(turn.text for turn in turns))


def test_examples_are_replies_that_the_parser_takes_whole() -> None:
    (entities,) = replies("entities")
    named = parse_json_reply(entities, "stop", ENTITIES).items
    (triples,) = replies("triples")
    stated = parse_json_reply(triples, "stop", TRIPLES).items
    assert len(named) == 8
    assert json.dumps(list(named), ensure_ascii=False) in load_prompt("triples").examples[0][0]
    assert all(len(triple) == 3 and {triple[0], triple[2]} & set(named) for triple in stated)
    assert set(named) <= {part for triple in stated for part in triple} | {"40 tonnes"}
    useful = Wanted("useful", (), lambda value: type(value) is int)
    chosen = [parse_json_reply(reply, "stop", useful).items for reply in replies("filter")]
    assert chosen == [(2, 4), ()]
    asked = [parse_json_reply(reply, "stop", ENTITIES).items for reply in replies("question_entities")]
    assert asked == [("the Pellow Bridge", "Jon Pellow"), ()]


@pytest.mark.parametrize("name", sorted(set(READER_PROMPTS.values())))
def test_readers_end_with_the_answers_line(name: str) -> None:
    prompt = load_prompt(name)
    assert '"Answer: "' in prompt.system
    assert all(reply.splitlines()[-1].startswith("Answer: ") for reply in replies(name))


def test_ircot_thinks_one_sentence_and_then_answers() -> None:
    thought, answer = replies("ircot")
    assert len(thought.splitlines()) == 1
    assert answer == "So the answer is: Saltby"


@pytest.mark.parametrize(
    "passage",
    [
        "{entities} and {passage} and {nonsense}",
        '<think>no</think> <|endoftext|> <|im_start|> {"a": {}} \\1 \\g<0>',
        "\n  北京位于中国。\n\n",
        "",
    ],
)
def test_a_passage_goes_in_as_it_is(passage: str) -> None:
    asked = load_prompt("triples").messages(passage=passage, entities="{passage}")[-1]
    assert asked.text == f"Passage:\n\n{passage}\n\nNamed entities:\n\n{{passage}}"


def test_a_file_of_your_own(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(OWN, "utf-8")
    prompt = load_prompt(path)
    assert (prompt.name, prompt.version, prompt.fields) == ("own", "7", {"text", "entities"})
    assert prompt.messages(text="t", entities="x") == (
        Message("system", "Say it."),
        Message("user", '{entities} e {"json": 1}'),
        Message("assistant", "r"),
        Message("user", 't x {"json": 1}'),
    )
    assert load_prompt(str(path)) == prompt


def test_digest_changes_with_what_a_model_sees_and_with_nothing_else(tmp_path: Path) -> None:
    def digest(text: str) -> str:
        path = tmp_path / "own.toml"
        path.write_text(text, "utf-8")
        return load_prompt(path).digest

    assert digest(OWN) == digest("# A comment.\n" + OWN) == digest(OWN.replace('"7"', '"8"'))
    changed = [OWN.replace("Say", "Tell"), OWN.replace('"json"', '"JSON"'), OWN.replace('"r"', '"s"')]
    assert len({digest(text) for text in [OWN, *changed]}) == 4


def test_unknown_name_lists_the_names() -> None:
    with pytest.raises(ConfigError, match=r"no prompt 'triple'; there are entities, filter, .*, triples, or"):
        load_prompt("triple")


def test_fields_that_are_missing_or_too_many() -> None:
    prompt = load_prompt("triples")
    with pytest.raises(ConfigError, match="triples takes the fields entities, passage; got passage"):
        prompt.messages(passage="x")
    with pytest.raises(ConfigError, match="takes the fields passage; got none"):
        load_prompt("entities").messages()
    with pytest.raises(ConfigError, match="got entities, passage, title"):
        prompt.messages(passage="x", entities="y", title="z")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version = ", "is not TOML in UTF-8"),
        (b"\xff", "is not TOML in UTF-8"),
        ("", "has nothing; expected the texts version, system and user"),
        (OWN.replace('"7"', "7"), "has examples, system, user, version; expected"),
        (OWN.replace("system", "sytem"), "has examples, sytem, user, version; expected"),
        (OWN.replace("[[examples]]", "[examples]").replace('reply = "r"', ""), "expected"),
        (OWN.replace('reply = "r"', "reply = 1"), "expected"),
        ("examples = 3\n" + OWN.split("[[")[0], "expected"),
        (OWN.replace('entities = "e"', ""), "takes the fields entities, text; got text"),
    ],
)
def test_a_file_of_another_shape(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=message):
        load_prompt(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no prompt file .*own.toml \(looked from"):
        load_prompt(tmp_path / "own.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_prompt(tmp_path / "folder.toml")
