"""The loop of retrieval and thoughts, over a table of what each query finds and a scripted model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hipporag_torch.chat import ChatReply, Message, Prompt, Usage
from hipporag_torch.errors import ConfigError
from hipporag_torch.ircot import IRCoTRetriever, retrieve_once
from hipporag_torch.llms.scripted import ScriptedChatModel
from hipporag_torch.protocols import Reads
from hipporag_torch.types import (
    Passage,
    Ranking,
    Route,
    Trace,
    TracedFact,
    TracedPassage,
    TracedSeed,
    TracedStep,
    Triple,
)

QUESTION = "Where was the drawer of the bridge born?"
DRAWN = "The bridge was drawn by Hanne Ortlieb."
BORN = "Hanne Ortlieb was born in Saltby."
DONE = "So the answer is: Saltby"
ONE = Usage(calls=1, prompt_tokens=10, completion_tokens=2)

Finds = Mapping[str, Mapping[str, float]]


class TableRetriever:
    """Finds what a table says; remembers the queries of each call and how many passages were wanted."""

    reads: ClassVar[Reads] = "graph"

    def __init__(self, finds: Finds, routes: Mapping[str, Route] | None = None) -> None:
        self._finds, self._routes = finds, routes or {}
        self.calls: list[tuple[str, ...]] = []
        self.top_k = 0

    def retrieve(self, questions: Sequence[str], *, top_k: int, trace: bool = False) -> list[Ranking]:
        self.calls.append(tuple(questions))
        self.top_k = top_k
        return [self._ranking(question, top_k, trace) for question in questions]

    def _ranking(self, question: str, top_k: int, trace: bool) -> Ranking:
        found = sorted(self._finds[question].items(), key=lambda hit: (-hit[1], hit[0]))[:top_k]
        route = self._routes.get(question, "graph")
        passages = tuple(Passage(id_, f"Text of {id_}.") for id_, _ in found)
        walked = Trace(
            facts=(TracedFact(Triple(question, "r", "o"), 1.0, True, (question, "o")),),
            seeds=(TracedSeed("phrase", question, 1.0, (("facts", 1.0),)),),
            passages=tuple(
                TracedPassage(id_, score, 0.0, ((question, score),), (("facts", score),))
                for id_, score in found
            ),
            linked=(question,),
            entities_from="question",
        )
        return Ranking(
            question,
            passages,
            tuple(score for _, score in found),
            route,
            walked if trace and route == "graph" else None,
            reason="timed out" if route == "dense:filter_error" else "",
            usage=ONE,
            dropped={"repeated": 1},
        )


FINDS: Finds = {
    QUESTION: {"bridge": 0.3, "fair": 0.2, "wick": 0.1},
    DRAWN: {"hanne": 0.25, "bridge": 0.2, "wick": 0.15},
    BORN: {"saltby": 0.5, "fair": 0.2},
}


def thinking(*thoughts: str | ChatReply) -> Callable[[Prompt], str | ChatReply]:
    """Replies by how many thoughts a prompt holds already."""

    def reply(prompt: Prompt) -> str | ChatReply:
        told = prompt[-1].text.partition("Thoughts so far:\n")[2]
        return thoughts[len(told.splitlines())]

    return reply


def retrieved(*thoughts: str | ChatReply, top_k: int = 9, trace: bool = False, **options: Any) -> Ranking:
    model = ScriptedChatModel(replies=thinking(*thoughts))
    retriever = IRCoTRetriever(retriever=TableRetriever(FINDS), llm=model, **options)
    (ranking,) = retriever.retrieve([QUESTION], top_k=top_k, trace=trace)
    return ranking


def test_passages_merge_by_their_best_score_and_ties_by_id() -> None:
    ranking = retrieved(DRAWN, BORN)
    assert ranking.passage_ids == ("saltby", "bridge", "hanne", "fair", "wick")
    assert ranking.scores == (0.5, 0.3, 0.25, 0.2, 0.15)
    assert (ranking.question, ranking.route, ranking.thoughts) == (QUESTION, "graph", (DRAWN, BORN))
    tied = IRCoTRetriever(
        retriever=TableRetriever({"q": {"b": 0.5}, "t.": {"a": 0.5, "c": 0.5}}),
        llm=ScriptedChatModel(replies=thinking("t.")),
        max_steps=2,
    )
    assert tied.retrieve(["q"], top_k=2)[0].passage_ids == ("a", "b")


def test_each_thought_is_the_next_query_and_the_model_sees_the_best_of_all_steps() -> None:
    table, model = TableRetriever(FINDS), ScriptedChatModel(replies=thinking(DRAWN, DONE))
    IRCoTRetriever(retriever=table, llm=model, passages_shown=2).retrieve([QUESTION], top_k=1)
    assert table.calls == [(QUESTION,), (DRAWN,)]
    assert [prompt[-1].text for prompt in model.asked] == [
        f"Passages:\n\nText of bridge.\n\nText of fair.\n\nQuestion: {QUESTION}\n\nThoughts so far:\n",
        f"Passages:\n\nText of bridge.\n\nText of hanne.\n\nQuestion: {QUESTION}\n\n"
        f"Thoughts so far:\n{DRAWN}",
    ]


@pytest.mark.parametrize(
    "last",
    [DONE, "so, the answer is Saltby.", "Thus, so the answer is: Saltby.", "So the answer is: St. Ives"],
)
def test_a_thought_with_the_marker_ends_the_question(last: str) -> None:
    ranking = retrieved(DRAWN, last, max_steps=9)
    assert ranking.thoughts == (DRAWN, last)
    assert "saltby" not in ranking.passage_ids
    assert ranking.reason == ""


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_max_steps_counts_retrievals(steps: int) -> None:
    table, model = TableRetriever(FINDS), ScriptedChatModel(replies=thinking(DRAWN, BORN))
    retriever = IRCoTRetriever(retriever=table, llm=model, max_steps=steps)
    (ranking,) = retriever.retrieve([QUESTION], top_k=9)
    assert table.calls == [(QUESTION,), (DRAWN,), (BORN,)][:steps]
    assert model.calls == steps - 1
    assert ranking.thoughts == (DRAWN, BORN)[: steps - 1]


def test_one_step_is_plain_retrieval() -> None:
    table = TableRetriever(FINDS)
    assert retrieve_once(retriever=table) is table
    plain = table.retrieve([QUESTION], top_k=3)
    looped = IRCoTRetriever(retriever=table, llm=ScriptedChatModel(replies={}), max_steps=1)
    assert looped.retrieve([QUESTION], top_k=3) == plain


def test_what_is_thought_does_not_hang_on_top_k() -> None:
    full = retrieved(DRAWN, BORN, top_k=99)
    for top_k in (1, 2, 4):
        cut = retrieved(DRAWN, BORN, top_k=top_k)
        assert cut == replace(full, passages=full.passages[:top_k], scores=full.scores[:top_k])


@pytest.mark.parametrize(
    ("reply", "thought"),
    [
        (f"{DRAWN} {BORN} {DONE}", DRAWN),
        (f"\n\nThought 2:\n{DRAWN}\nMore.", DRAWN),
        (f"1. {DRAWN}", DRAWN),
        (f"- Thought: {DRAWN}", DRAWN),
        (f"<think>So the answer is: Ole</think> {DRAWN}", DRAWN),
        (f"{DRAWN}\n<think>So the answer is: Ole", DRAWN),
        ("  The bridge was drawn\tby Hanne  Ortlieb.  Then", DRAWN),
        (ChatReply("The bridge was drawn by Hanne Ortlieb. She", "length"), DRAWN),
    ],
)
def test_only_the_first_sentence_is_taken(reply: str | ChatReply, thought: str) -> None:
    assert retrieved(reply, DONE, max_steps=2).thoughts == (thought,)


def test_a_model_that_fails_ends_its_question_with_what_was_found() -> None:
    for reply, reason in [
        (ChatReply("", "error", Usage(calls=2), "timed out"), "timed out"),
        (ChatReply("", "refused"), "the reply was refused by a content filter"),
        ("", "the reply is empty"),
        ("<think>Hm.</think>", "the reply is empty"),
    ]:
        ranking = retrieved(DRAWN, reply)
        assert ranking.reason.startswith("step 2: no thought: ")
        assert reason in ranking.reason
        assert (ranking.route, ranking.thoughts) == ("graph", (DRAWN,))
        assert ranking.passage_ids == ("bridge", "hanne", "fair", "wick")
    assert retrieved(ChatReply("", "error", Usage(calls=2), "down")).usage == ONE + Usage(calls=2)


def test_usage_and_unusable_choices_of_all_steps_add_up() -> None:
    reply = ChatReply(DRAWN, usage=Usage(cached_calls=1, cached_prompt_tokens=7))
    ranking = retrieved(reply, reply, max_steps=2)
    assert ranking.usage == ONE + ONE + reply.usage
    assert ranking.dropped == {"repeated": 2}


def test_the_route_is_the_first_steps_and_later_troubles_are_told() -> None:
    table = TableRetriever(FINDS, {DRAWN: "dense:filter_error", BORN: "dense:no_facts"})
    model = ScriptedChatModel(replies=thinking(DRAWN, BORN))
    (ranking,) = IRCoTRetriever(retriever=table, llm=model).retrieve([QUESTION], top_k=1, trace=True)
    assert (ranking.route, ranking.reason) == ("graph", "step 2: timed out")
    assert ranking.trace is not None
    assert [(step.query, step.route, step.reason, step.thought) for step in ranking.trace.steps] == [
        (QUESTION, "graph", "", DRAWN),
        (DRAWN, "dense:filter_error", "timed out", BORN),
        (BORN, "dense:no_facts", "", ""),
    ]
    first = IRCoTRetriever(
        retriever=TableRetriever(FINDS, {QUESTION: "dense:filter_error"}), llm=model, max_steps=1
    )
    assert [(r.route, r.reason) for r in first.retrieve([QUESTION], top_k=1)] == [
        ("dense:filter_error", "timed out")
    ]


def test_the_trace_shows_every_step_and_each_passage_where_it_scored_best() -> None:
    ranking = retrieved(DRAWN, DONE, top_k=3, trace=True)
    trace = ranking.trace
    assert trace is not None
    assert [seed.name for seed in trace.seeds] == [QUESTION]
    assert [fact.ends[0] for fact in trace.facts] == [QUESTION]
    assert (trace.linked, trace.entities_from) == ((QUESTION,), "question")
    assert [(p.passage_id, p.mass, p.through[0][0]) for p in trace.passages] == [
        ("bridge", 0.3, QUESTION),
        ("hanne", 0.25, DRAWN),
        ("fair", 0.2, QUESTION),
    ]
    steps = TableRetriever(FINDS).retrieve([QUESTION, DRAWN], top_k=5, trace=True)
    assert trace.steps == (
        TracedStep(QUESTION, "graph", thought=DRAWN, trace=steps[0].trace),
        TracedStep(DRAWN, "graph", thought=DONE, trace=steps[1].trace),
    )


def test_a_batch_asks_all_that_go_on_at_once_and_equals_one_by_one() -> None:
    finds = {
        "a?": {"p": 0.4, "q": 0.1},
        "b?": {"q": 0.3},
        "c?": {"r": 0.2},
        "next of a?": {"s": 0.3},
        "next of b?": {"p": 0.6},
        "last of a?": {"t": 0.9},
    }
    replies = {
        ("a?", 0): "next of a?",
        ("a?", 1): "last of a?",
        ("b?", 0): "next of b?",
        ("b?", 1): DONE,
        ("c?", 0): ChatReply("", "error", error="timed out"),
    }

    def reply(prompt: Prompt) -> str | ChatReply:
        asked, _, told = prompt[-1].text.partition("Question: ")[2].partition("\n\nThoughts so far:\n")
        return replies[asked, len(told.splitlines())]

    table = TableRetriever(finds)
    retriever = IRCoTRetriever(retriever=table, llm=ScriptedChatModel(replies=reply))
    questions = ["a?", "b?", "c?", "a?"]
    together = retriever.retrieve(questions, top_k=3)
    assert table.calls == [
        ("a?", "b?", "c?", "a?"),
        ("next of a?", "next of b?", "next of a?"),
        ("last of a?", "last of a?"),
    ]
    assert [ranking.passage_ids for ranking in together] == [
        ("t", "p", "s"),
        ("p", "q"),
        ("r",),
        ("t", "p", "s"),
    ]
    assert together == [retriever.retrieve([question], top_k=3)[0] for question in questions]


def test_nothing_is_thought_about_an_empty_index() -> None:
    table = TableRetriever({QUESTION: {}}, {QUESTION: "none:empty_index"})
    model = ScriptedChatModel(replies=thinking(DRAWN))
    (ranking,) = IRCoTRetriever(retriever=table, llm=model).retrieve([QUESTION], top_k=3)
    assert (ranking.route, ranking.passages, model.calls) == ("none:empty_index", (), 0)


def test_a_question_that_finds_nothing_may_find_something_by_a_thought() -> None:
    table = TableRetriever({"q": {}, "t.": {"a": 2.0}}, {"q": "bm25:no_match", "t.": "bm25:requested"})
    model = ScriptedChatModel(replies=thinking("t."))
    (ranking,) = IRCoTRetriever(retriever=table, llm=model, max_steps=2).retrieve(["q"], top_k=3)
    assert (ranking.route, ranking.passage_ids) == ("bm25:no_match", ("a",))


def test_a_small_context_shows_fewer_passages_and_says_so() -> None:
    model = ScriptedChatModel(replies=thinking(DRAWN, DONE))
    IRCoTRetriever(retriever=TableRetriever(FINDS), llm=model, passages_shown=2).retrieve([QUESTION], top_k=1)
    room = model.count_tokens(model.asked[0])
    # The thought has 7 words, a passage 3; 256 are kept for the reply.
    fewer, none = (
        "thought of 1 of 2 passages, the context holds no more",
        "a prompt with the passage bridge has",
    )
    for spare, reason in [
        (5, f"step 2: {fewer}"),
        (0, f"step 2: {none} {room + 4} tokens"),
        (-1, f"step 1: {fewer}; step 2: {none}"),
        (-4, f"step 1: {none} {room - 3} tokens"),
    ]:
        small = ScriptedChatModel(replies=thinking(DRAWN, DONE), context_tokens=room + 256 + spare)
        retriever = IRCoTRetriever(retriever=TableRetriever(FINDS), llm=small, passages_shown=2)
        (ranking,) = retriever.retrieve([QUESTION], top_k=1)
        assert ranking.reason.startswith(reason)
        assert ranking.passage_ids == ("bridge",)


def test_a_prompt_of_ones_own(tmp_path: Path) -> None:
    prompt = tmp_path / "mine.toml"
    prompt.write_text("version = '1'\nsystem = ''\nuser = '{passages}+{question}+{thoughts}'\n", "utf-8")
    model = ScriptedChatModel(replies=lambda prompt: DONE)
    table = TableRetriever({"q": {"a": 1.0}})
    IRCoTRetriever(retriever=table, llm=model, prompt=prompt).retrieve(["q"], top_k=1)
    assert model.asked[0][-1] == Message("user", "Text of a.+q+")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_steps": 0}, r"ircot\.max_steps must be at least 1, got 0"),
        ({"passages_shown": 0}, r"ircot\.passages_shown must be at least 1, got 0"),
        ({"max_tokens": 0}, r"ircot\.max_tokens must be at least 1, got 0"),
        (
            {"prompt": "reader"},
            r"ircot\.prompt=reader has the fields passages, question; expected passages, q",
        ),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        retrieved(DONE, **options)
