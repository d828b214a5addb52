import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.chat import Finish
from hipporag_torch.extractors.triples import ENTITIES, TRIPLES
from hipporag_torch.replies import JsonReply, Wanted, parse_json_reply, without_reasoning

USEFUL = Wanted("useful", (), lambda value: type(value) is int)
MILLION = 1_000_000


def entities(text: str, finish: Finish = "stop") -> JsonReply:
    return parse_json_reply(text, finish, ENTITIES)


def triples(text: str, finish: Finish = "stop") -> JsonReply:
    return parse_json_reply(text, finish, TRIPLES)


@pytest.mark.parametrize(
    "text",
    [
        '{"entities": ["A", "B"]}',
        '```json\n{"entities": ["A", "B"]}\n```',
        '```\n{"entities": ["A", "B"]}```',
        'Sure! Here they are:\n{"entities": ["A", "B"]}\nAnything else {about [1] this}?',
        '["A", "B"]',
        'The entities are ["A", "B"], as in the passage [1].',
        '{"named_entities": ["A", "B"]}',
        '{"Named Entities": ["A", "B"]}',
        '{"extracted-entities": ["A", "B"]}',
        '{"result": {"entities": ["A", "B"]}, "language": "en"}',
        '[{"entities": ["A", "B"]}]',
        '{"entities": {"people": ["A"], "places": ["B"]}}',
        '{"entities": ["A", "B",],}',
        "{'entities': ['A', 'B']}",
        '{"entities": ["A", \'B\']}',
        '{{"entities": ["A", "B"]}}',
        '\ufeff  {"entities"\n:\t["A" , "B"]}',
        '{"entities": ["draft"]}\nNo, better:\n{"entities": ["A", "B"]}',
        '{"entities": ["A", "B"]}\n["C"]',
        '{"triples": [], "entities": ["A", "B"]}',
        'As she said: "[ {" is odd. {"entities": ["A", "B"]}',
        'Odd: ["unclosed {"entities": ["A", "B"]}',
        '[[ ## entities ## ]]\n{"entities": ["A", "B"]}\n\n[[ ## completed ## ]]',
    ],
)
def test_the_list_is_found_whatever_stands_around_it(text: str) -> None:
    assert entities(text) == JsonReply(("A", "B"))


@pytest.mark.parametrize(
    "text",
    [
        '<think>Maybe {"entities": ["draft"]}?</think>{"entities": ["A"]}',
        'Maybe {"entities": ["draft"]}?\n</think>\n\n{"entities": ["A"]}',
        '<THINK>{"entities": ["draft"]}</THINK>\n{"entities": ["A"]}',
        '<think>one</think><think>{"entities": ["draft"]}</think> ["A"]',
        '<thinking>{"entities": ["draft", </thinking> {"entities": ["A"]}',
        'I see ["one, and </think> then {"entities": ["A"]}',
        "I see [\"one, and </think> then ['A']",
        '<think>the tag </think> in the text: {"entities": ["draft"]} </think> {"entities": ["A"]}',
        '{"entities": ["A"]} <think> was that right? {"entities": ["draft"]}',
    ],
)
def test_a_draft_in_the_reasoning_never_wins(text: str) -> None:
    assert entities(text) == JsonReply(("A",))


def test_tags_within_an_entry_are_text() -> None:
    assert entities('{"entities": ["<think>", "a </think> b"]}').items == ("<think>", "a </think> b")


@pytest.mark.parametrize(
    ("text", "finish", "fault"),
    [
        ("", "stop", "the reply is empty"),
        (" \n", "length", "the reply is empty"),
        ("I cannot do that.", "stop", "the reply has no JSON with 'entities'"),
        ("The entities are", "length", "the reply has no JSON with 'entities' before it was cut"),
        ('<think>{"entities": ["draft"]}', "stop", "the reply is all reasoning"),
        ('<think>{"entities": ["draft"]}', "length", "the reply was cut while the model was reasoning"),
        ('{"entities": ["draft"]}</think>', "stop", "the reply has no JSON with 'entities'"),
        ('{"entities": ["A" "B"]}', "stop", "the reply is not valid JSON, and has no 'entities' that is"),
        (
            '{"entities": ["O"Brien", "A"]}',
            "stop",
            "the reply is not valid JSON, and has no 'entities' that is",
        ),
        (
            "{'entities': ['O'Brien', 'A']}",
            "stop",
            "the reply is not valid JSON, and has no 'entities' that is",
        ),
        ('{"entities": null}', "stop", "the reply's 'entities' is no list but NoneType"),
        ('{"entities": "A, B"}', "stop", "the reply's 'entities' is no list but str"),
        ('{"entities": [', "length", "the reply was cut before the first of its entities"),
        ('{"entities": ["A', "length", "the reply was cut before the first of its entities"),
        ('{"names": ["A"]}', "stop", "the reply has no JSON with 'entities'"),
        ("[" * 40 + '"A"' + "]" * 40, "stop", "the reply has no JSON with 'entities'"),
        ("[]" * 10_001, "stop", "the reply is noise: it has more than 10000 pieces of JSON"),
    ],
)
def test_what_holds_no_list_says_why(text: str, finish: Finish, fault: str) -> None:
    reply = entities(text, finish)
    assert (reply.items, reply.fault) == ((), fault)


def test_what_follows_a_mistake_is_not_taken_for_the_whole() -> None:
    broken = '{"triples": [["a","r","b"], ["c","r","O"Brien"], ["e","r","f"]]}'
    assert triples(broken).fault == "the reply is not valid JSON, and has no 'triples' that is"
    assert triples(f'{broken} Sorry: {{"triples": [["a","r","b"]]}}').items == (["a", "r", "b"],)


def test_an_empty_list_is_an_answer() -> None:
    assert entities('{"entities": []}') == entities("[]") == entities("None: []") == JsonReply()


@pytest.mark.parametrize(
    "text",
    [
        '{"triples": [["a", "r", "b"], ["c", "r", 4]]}',
        '[["a", "r", "b"], ["c", "r", 4]]',
        '["a", "r", "b"]\n["c", "r", 4]',
        '1. ["a", "r", "b"]\n2. ["c", "r", 4]',
        '{"extracted_triples": [["a", "r", "b"], ["c", "r", 4]]}',
        '{"data": {"output": {"triples": [["a", "r", "b"], ["c", "r", 4]]}}}',
    ],
)
def test_triples_are_found_with_the_key_and_without(text: str) -> None:
    assert triples(text) == JsonReply((["a", "r", "b"], ["c", "r", 4]))


def test_a_lone_triple_is_a_list_of_one() -> None:
    as_object = {"subject": "a", "predicate": "r", "object": "b"}
    assert triples('{"triples": ["a", "r", "b"]}').items == (["a", "r", "b"],)
    assert triples(json.dumps({"triples": as_object})).items == (as_object,)
    assert triples(json.dumps(as_object)).items == (as_object,)


def test_numbers_as_the_wanted_entries() -> None:
    assert parse_json_reply('{"useful": [3, 1]}', "stop", USEFUL).items == (3, 1)
    assert parse_json_reply('{"useful": 3}', "stop", USEFUL).items == (3,)
    assert parse_json_reply('In [sic] short: [3, "x"]', "stop", USEFUL).items == (3, "x")


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        ('{"triples": [["a","r","b"],["c","r","d"],["e","r', 2),
        ('{"triples": [["a","r","b"],["c","r","d"],["e","r","f"', 2),
        ('{"triples": [["a","r","b"],["c","r","d"],["e","r",', 2),
        ('{"triples": [["a","r","b"],["c","r","d"]', 2),
        ('{"triples": [["a","r","b"],["c","r","d"],', 2),
        ('{"triples": [["a","r","b"],["c","r","d\\', 1),
        ('{"triples": [["a","r","b"],["c","r",1', 1),
        ('{"triples": [["a","r","b"],["c","r",nul', 1),
        ('[["a","r","b"],["c"', 1),
        ('["a","r","b"]\n["c","r', 1),
        ("{'triples': [['a','r','b'],['c','r'", 1),
        ('{"triples": [["a","r","b"],{"subject": "c","predicate"', 1),
        ('{"triples": [["a","r","b"],{"subject": "c","predicate":', 1),
        ('{"triples": [["a","r","b"],{"subject"  ', 1),
        ('{"triples": [["a","r","b"],[1 ', 1),
        ('{"triples": [["a","r","b"],[None,Tr', 1),
        ('{"triples": [["a","r","b"]], "no', 1),
        ('{"result": {"triples": [["a","r","b"],["c', 1),
        ('```json\n{"triples": [\n["a","r","b"],\n["c"', 1),
        ('{"triples": [["a","r","b"]], "note": "and so', 1),
    ],
)
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_a_cut_reply_keeps_every_whole_triple(cut: str, kept: int, finish: Finish) -> None:
    whole = (["a", "r", "b"], ["c", "r", "d"])
    assert triples(cut, finish) == JsonReply(whole[:kept], truncated=True)


def test_a_whole_list_in_a_reply_that_was_cut_is_marked() -> None:
    assert triples('[["a","r","b"]] These are', "length") == JsonReply((["a", "r", "b"],), truncated=True)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (r'"a\nb\t\"c\" \/ \\ d"', 'a\nb\t"c" / \\ d'),
        ('"a\nb\x00\x1b"', "a\nb\x00\x1b"),
        (r'"\u5317\u4eac \ud83d\ude00"', "北京 😀"),
        (r'"\ud800"', "\ud800"),
        (r'"\alpha and \u12"', r"\alpha and \u12"),
        (r"'it\'s \"so\"'", 'it\'s "so"'),
        ('"<|endoftext|>"', "<|endoftext|>"),
        ("-12", -12),
        ("2.5", 2.5),
        ("1e400", "1e400"),
        ("007", "007"),
        ("1.10", "1.10"),
        ("9" * 5000, "9" * 5000),
        ("true", True),
        ("None", None),
        ("NaN", None),
    ],
)
def test_values_are_what_they_say(raw: str, value: Any) -> None:
    assert repr(entities(f'{{"entities": ["A", {raw}]}}').items) == repr(("A", value))


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch HACKED')",
        "{'entities': [__import__('os').system('touch HACKED')]}",
        '{"entities": [open("HACKED", "w")]}',
        "!!python/object/apply:os.system ['touch HACKED']",
    ],
)
def test_nothing_is_run(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert all("touch" in str(item) for item in entities(text).items)
    assert list(tmp_path.iterdir()) == []


NOISE = {
    "brackets": "[",
    "braces": "{",
    "quotes": '"',
    "backslashes": "\\",
    "bracket and quote": '["',
    "bracket and single quote": "['",
    "escaped quotes": '["\\"',
    "empty lists": "[]",
    "nested": '[{"a":',
    "nested numbers": "[1,",
    "keys": '{"a":1,"',
    "opening tags": "<think>",
    "closing tags": "</think>",
    "tags in strings": '["</think>',
    "cut strings": '["a\\',
    "spaces": "{    ",
    "literals": "[tru",
}


@pytest.mark.parametrize("start", ["", "[", '["', '{"triples": ['])
@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())
def test_a_million_characters_of_noise_take_under_three_seconds(start: str, noise: str) -> None:
    text = start + (noise * (MILLION // len(noise)))
    assert within_three_seconds(lambda: (triples(text), without_reasoning(text)))


@pytest.mark.parametrize("entry", ['["a", "b", "c"],', "[1,2,3],", '{"subject": "a"},', "[],", "1,", '"a" ,'])
def test_a_million_characters_of_entries_take_under_three_seconds(entry: str) -> None:
    text = '{"triples": [' + entry * (MILLION // len(entry)) + "]}"
    replies: list[JsonReply] = []
    assert within_three_seconds(lambda: replies.append(triples(text)))
    assert len(replies[0].items) == MILLION // len(entry)


def test_a_million_characters_of_keys_take_under_three_seconds() -> None:
    text = "{" + '"ab":1,' * (MILLION // 7) + '"triples": [["a","r","b"]]}'
    replies: list[JsonReply] = []
    assert within_three_seconds(lambda: replies.append(triples(text)))
    assert replies[0].items == (["a", "r", "b"],)


def within_three_seconds(run: Callable[[], object]) -> bool:
    """Of this process alone, in one of three tries: a loaded machine is no failure."""
    for _ in range(3):
        start = time.process_time()
        run()
        if time.process_time() - start < 3:
            return True
    return False


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Answer: Oslo", "Answer: Oslo"),
        ("<think>Bergen?</think>\n\nAnswer: Oslo", "Answer: Oslo"),
        ("Bergen? </think> Answer: Oslo", "Answer: Oslo"),
        ("<think>a</think>b<think>c</think> Answer: Oslo", "Answer: Oslo"),
        ("Answer: Oslo <think> or", "Answer: Oslo"),
        ("<think>Bergen, or", ""),
        ("<thinking>Bergen</thinking>Oslo", "Oslo"),
    ],
)
def test_free_text_without_its_reasoning(text: str, rest: str) -> None:
    assert without_reasoning(text) == rest


def test_real_replies_of_gpt_4o_mini(shared: Path) -> None:
    folder = shared / "data" / "llm_cache_sample"
    messages = [
        row["message"] for row in json.loads((folder / "llm_cache_gpt-4o-mini.json").read_text("utf-8"))
    ]
    docs = json.loads((folder / "openie_results_ner_gpt-4o-mini.json").read_text("utf-8"))["docs"]
    assert len(messages) == 8
    named = [reply for text in messages if not (reply := entities(text)).fault and "named_entities" in text]
    stated = [reply for text in messages if not (reply := triples(text)).fault and '"triples"' in text]
    assert sorted(map(list, (reply.items for reply in named))) == sorted(
        doc["extracted_entities"] for doc in docs
    )
    assert sorted(map(list, (reply.items for reply in stated))) == sorted(
        doc["extracted_triples"] for doc in docs
    )
    assert not any(reply.truncated for reply in [*named, *stated])
    filtered = next(text for text in messages if "fact_after_filter" in text)
    facts = parse_json_reply(filtered, "stop", Wanted("fact", (), TRIPLES.is_item)).items
    assert facts[0] == ["karl deisseroth", "works at", "stanford university"]
    assert len(facts) == 3
    answer = next(text for text in messages if "Answer:" in text)
    assert without_reasoning(answer) == answer.strip()
    assert triples(answer).fault == "the reply has no JSON with 'triples'"
