"""Recognition memory, by nobody and by a scripted model. Exact: every choice, and what becomes of it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.chat import ChatReply, Prompt, Usage
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import BudgetError, ConfigError
from hipporag_torch.fact_filters import KeepAllFacts, LLMFactFilter
from hipporag_torch.indexer import Indexer
from hipporag_torch.llms.scripted import ScriptedChatModel
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.retrievers.seeding import ReferenceSeeding
from hipporag_torch.types import Document, Extraction, Fact, FilterDecision, Passage, Sentence, Triple

from ..watched_model import WatchedModel

FACTS = [
    Triple("ada vale", "founded", "northwind press"),
    Triple("bergen", "lies in", "norway"),
    Triple("northwind press", "prints", "atlases"),
    Triple("tove lund", "maps", "glaciers"),
]
LINES = "1. ada vale | founded | northwind press\n2. bergen | lies in | norway"


class FoundedExtractor:
    producer = "founded"
    calls_per_passage = 0

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        return [Extraction(triples=(FACTS[0],)) for _ in passages]


def decided(reply: str | ChatReply, shown: Sequence[Fact] = FACTS, **options: Any) -> FilterDecision:
    model = ScriptedChatModel(replies=lambda prompt: reply)
    (decision,) = LLMFactFilter(llm=model, **options).select(["Who founded it?"], [shown])
    return decision


def useful(*choices: Any) -> str:
    return json.dumps({"useful": choices})


def test_keeps_everything_that_it_is_shown() -> None:
    fact = Triple("ada vale", "founded", "northwind press")
    assert KeepAllFacts().select(["Who?", "Where?"], [[fact] * 3, []]) == [
        FilterDecision(kept=(0, 1, 2)),
        FilterDecision(kept=()),
    ]


def test_the_model_sees_the_question_and_the_numbered_facts() -> None:
    model = WatchedModel(replies=lambda prompt: useful(2))
    (decision,) = LLMFactFilter(llm=model, max_tokens=7).select(["Where is {facts}?"], [FACTS[:2]])
    assert model.asked[0][-1].text == f"Question: Where is {{facts}}?\n\nFacts:\n{LINES}"
    assert decision.kept == (1,)
    assert model.seen_max_tokens == 7
    assert model.seen_schema == {
        "type": "object",
        "properties": {"useful": {"type": "array", "items": {"type": "integer"}}},
        "required": ["useful"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("choices", "kept", "dropped"),
    [
        ([], (), {}),
        ([3, 1], (0, 2), {}),
        ([2, 2, 2], (1,), {"repeated": 2}),
        ([0, -1, 5, 4], (3,), {"out_of_range": 3}),
        ([10**40, "9" * 5000, 1], (0,), {"out_of_range": 2}),
        ([2.0, 1.5], (1,), {"not_a_number": 1}),
        ([True, None, False], (), {"not_a_number": 3}),
        (["2", " 3. ", "-1", "seven"], (1, 2), {"not_shown": 1, "out_of_range": 1}),
        (["bergen | lies in | norway"], (1,), {}),
        (["  Bergen|LIES  IN |Ｎorway"], (1,), {}),
        (["2. bergen | lies in | norway", "2) bergen | lies in | norway"], (1,), {"repeated": 1}),
        (["3. bergen | lies in | norway"], (), {"not_shown": 1}),
        (["bergen | lies in | norwa", "bergen | is in | norway"], (), {"not_shown": 2}),
        ([["Bergen", "lies in", "Norway"], ["bergen", "norway"]], (1,), {"not_shown": 1}),
        (
            [{"subject": "Bergen", "predicate": "lies in", "object": "Norway"}, {"a": 1}],
            (1,),
            {"not_shown": 1},
        ),
        ([2, "bergen | lies in | norway", ["bergen", "lies in", "norway"]], (1,), {"repeated": 2}),
    ],
)
def test_choices(choices: list[Any], kept: tuple[int, ...], dropped: dict[str, int]) -> None:
    decision = decided(useful(*choices))
    assert (decision.kept, decision.error, decision.dropped) == (kept, "", dropped)


MIXED = [
    Triple("bergen", "lies in", "norway"),
    Sentence("Ada Vale founded Northwind Press."),
    Sentence('The sign read "a | b|c",\nin red.'),
    Sentence("2. Bundesliga is a league."),
    Sentence("Tove Lund | maps | glaciers"),
]


def test_a_sentence_is_shown_as_its_text_on_a_line_of_its_own() -> None:
    model = WatchedModel(replies=lambda prompt: useful(3))
    (decision,) = LLMFactFilter(llm=model).select(["What was red?"], [MIXED])
    assert model.asked[0][-1].text.partition("Facts:\n")[2].splitlines() == [
        "1. bergen | lies in | norway",
        "2. Ada Vale founded Northwind Press.",
        '3. The sign read "a | b|c", in red.',
        "4. 2. Bundesliga is a league.",
        "5. Tove Lund | maps | glaciers",
    ]
    assert decision.kept == (2,)


@pytest.mark.parametrize(
    ("choice", "row"),
    [
        ("bergen | lies in | norway", 0),
        ("Ada Vale founded Northwind Press.", 1),
        ("2. ada vale  founded NORTHWIND press.", 1),
        ('The sign read "a | b|c", in red.', 2),
        ('3) The sign read "a|b | c",\nin red.', 2),
        ("2. Bundesliga is a league.", 3),
        ("4. 2. Bundesliga is a league.", 3),
        ("Tove Lund | maps | glaciers", 4),
        (["Tove Lund", "maps", "glaciers"], 4),
    ],
)
def test_sentences_are_chosen_by_their_text_among_triples(choice: Any, row: int) -> None:
    decision = decided(useful(choice), MIXED)
    assert (decision.kept, decision.error, decision.dropped) == ((row,), "", {})


@pytest.mark.parametrize("choice", ["Ada Vale founded Northwind Press", 'The sign read "a', "Bundesliga"])
def test_a_part_of_a_sentence_is_no_choice(choice: str) -> None:
    decision = decided(useful(choice), MIXED)
    assert (decision.kept, decision.error, decision.dropped) == ((), "", {"not_shown": 1})


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("[2, 4]", (1, 3)),
        ("Sure!\n```json\n{'useful': [2,],}\n```\nHope this helps.", (1,)),
        ('<think>{"useful": [1]}? No.</think>{"useful": [2]}', (1,)),
        ('{"fact": [["ada vale", "founded", "northwind press"]]}', (0,)),
        ('{"useful": 3}', (2,)),
        ('{"reason": "facts 1 and 2", "useful": [4]}', (3,)),
    ],
)
def test_what_models_really_send(reply: str, kept: tuple[int, ...]) -> None:
    decision = decided(reply)
    assert (decision.kept, decision.error, decision.dropped) == (kept, "", {})


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("", "the reply is empty"),
        ("None of them helps.", "the reply has no JSON with 'useful'"),
        ('{"useful": "all"}', "the reply's 'useful' is no list but str"),
        (ChatReply('{"useful": [1', "length"), "cut"),
        (ChatReply("", "error", error="status 500"), "status 500"),
        (ChatReply("I cannot.", "refused"), "refused"),
    ],
)
def test_a_reply_that_is_no_choice_is_an_error_and_not_a_choice_of_none(
    reply: str | ChatReply, error: str
) -> None:
    decision = decided(reply)
    assert decision.kept == ()
    assert error in decision.error


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.integers(-2, 6) | JSON, max_size=9), st.integers(1, 4) | st.none())
def test_any_choice_is_kept_or_counted(choices: list[Any], keep_at_most: int | None) -> None:
    decision = decided(useful(*choices), keep_at_most=keep_at_most)
    assert list(decision.kept) == sorted(set(decision.kept) & set(range(len(FACTS))))
    assert all(count > 0 for count in decision.dropped.values())
    if not decision.error and not any(isinstance(choice, list | dict) for choice in choices):
        assert len(decision.kept) + sum(decision.dropped.values()) == len(choices)


@given(st.text(st.sampled_from('{}[]":,0123 useful|<think>/\n\ud800') | st.characters(), max_size=60))
def test_no_reply_raises(reply: str) -> None:
    decision = decided(reply)
    assert not decision.error or not decision.kept


def test_a_cut_reply_keeps_its_whole_choices_and_says_so() -> None:
    decision = decided(ChatReply('{"useful": [3, 2, 1', "length"))
    assert (decision.kept, decision.error, decision.dropped) == ((1, 2), "", {"cut": 1})


def test_the_choices_named_first_are_kept_in_the_order_shown() -> None:
    decision = decided(useful(4, 9, 2, 2, 1), keep_at_most=2)
    assert decision.kept == (1, 3)
    assert decision.dropped == {"beyond_limit": 1, "out_of_range": 1, "repeated": 1}


def test_every_question_has_a_decision_when_some_replies_fail() -> None:
    replies = {"a": useful(1), "b": "no idea", "d": useful(), "e": useful(2)}

    def answer(prompt: Prompt) -> str | ChatReply:
        question = prompt[-1].text.removeprefix("Question: ").partition("?")[0]
        if question not in replies:
            return ChatReply("", "error", error="timed out", usage=Usage(calls=1))
        return replies[question]

    model = WatchedModel(replies=answer)
    questions = ["a?", "b?", "nothing shown?", "c?", "d?", "e?"]
    decisions = LLMFactFilter(llm=model).select(questions, [FACTS, FACTS, [], FACTS[:1], FACTS, FACTS[:2]])
    assert [decision.kept for decision in decisions] == [(0,), (), (), (), (), (1,)]
    assert [bool(decision.error) for decision in decisions] == [False, True, False, True, False, False]
    assert [decision.usage.calls for decision in decisions] == [1, 1, 0, 1, 1, 1]
    assert model.calls == 5
    assert model.accepted == {0: True, 1: False, 2: False, 3: True, 4: True}


def test_what_concerns_all_questions_is_raised() -> None:
    def no_money(prompt: Prompt) -> str:
        raise BudgetError("the budget is spent")

    with pytest.raises(BudgetError, match="spent"):
        LLMFactFilter(llm=ScriptedChatModel(replies=no_money)).select(["Who?"], [FACTS])


def test_a_ranking_tells_what_its_filter_cost_and_dropped() -> None:
    embedder = HashingEmbedder(dim=4096)
    indexer = Indexer(embedder=embedder, extractor=FoundedExtractor())
    index = indexer.add(indexer.empty(), [Document("Ada Vale founded Northwind Press.")])[0]
    replies = {"Who founded it?": useful(1, 8, 1), "Ada Vale?": ChatReply("", "error", error="timed out")}
    model = ScriptedChatModel(replies=lambda prompt: replies[prompt[-1].text.split("\n")[0][10:]])
    retriever = HippoRAGRetriever(
        index=index,
        embedder=embedder,
        seeding=ReferenceSeeding(),
        fact_filter=LLMFactFilter(llm=model),
    )
    asked, failed, unlike = retriever.retrieve(["Who founded it?", "Ada Vale?", "qqq zzz"], top_k=1)
    assert (asked.route, asked.dropped) == ("graph", {"out_of_range": 1, "repeated": 1})
    assert asked.usage == Usage(
        calls=1, prompt_tokens=model.count_tokens(model.asked[0]), completion_tokens=4
    )
    assert (failed.route, failed.reason) == ("dense:filter_error", "timed out")
    assert (unlike.route, unlike.usage) == ("dense:no_facts", Usage())


def test_a_prompt_of_ones_own(tmp_path: Path) -> None:
    prompt = tmp_path / "mine.toml"
    prompt.write_text("version = '1'\nsystem = 'Choose.'\nuser = '{facts} ? {question}'\n", "utf-8")
    model = ScriptedChatModel(replies={f"{LINES} ? Who?": useful(1)})
    assert LLMFactFilter(llm=model, prompt=prompt).select(["Who?"], [FACTS[:2]])[0].kept == (0,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": "nonsense"}, "there is no prompt 'nonsense'"),
        ({"prompt": "ircot"}, r"fact_filter\.prompt=ircot has the fields passages, question, thoughts; exp"),
        ({"max_tokens": 0}, r"fact_filter\.max_tokens must be at least 1, got 0"),
        ({"keep_at_most": 0}, r"fact_filter\.keep_at_most must be at least 1, or null, got 0"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LLMFactFilter(llm=ScriptedChatModel(replies={}), **options)
