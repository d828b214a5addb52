"""The extractive reader on small texts, and the reading of a scripted model's replies."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.chat import ChatReply, Finish, Message, Prompt, Usage
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.llms.scripted import ScriptedChatModel
from hipporag_torch.prompts import READER_PROMPTS, load_prompt
from hipporag_torch.readers import EXTRACTIVE, ExtractiveReader, LLMReader, split_sentences
from hipporag_torch.readers.citations import passages_with
from hipporag_torch.readers.final_answer import final_answer
from hipporag_torch.readers.sentences import first_sentence
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Passage, Ranking, Source

TOWER = "The tower at Skarn was built in 1431 by Ida Lund. It leans a little. Sheep graze below it."
FERRY = "The ferry to Skarn sails twice a day. Its captain is Ole Brand."


def passage(name: str, text: str, title: str = "") -> Passage:
    metadata = {"title": title} if title else {}
    return Passage(name, f"{title}\n{text}" if title else text, (Source(name, 0, metadata),))


def ranking(question: str, passages: Sequence[Passage], scores: Sequence[float]) -> Ranking:
    return Ranking(question, tuple(passages), tuple(scores), "graph")


def reader(**options: int) -> ExtractiveReader:
    return ExtractiveReader(embedder=HashingEmbedder(dim=4096), **options)


def test_one_sentence_that_explains_the_question_answers_it():
    tower, ferry = passage("t", TOWER, "Tower"), passage("f", FERRY, "Ferry")
    asked = ranking("Who built the tower at Skarn?", [ferry, tower], [0.2, 0.1])
    answer = reader().read([asked])[0]
    assert answer.text == "The tower at Skarn was built in 1431 by Ida Lund."
    assert (answer.question, answer.citations, answer.passage_ids) == (asked.question, ("t",), ("f", "t"))
    assert answer.method == EXTRACTIVE
    assert "no language model" in EXTRACTIVE


def test_what_the_first_sentence_leaves_open_is_looked_for_in_another_passage():
    """The tower's sentence explains all but the songs, and Ida's passage does not name the tower."""
    ida = passage("i", "She wrote songs for the harvest. She feared geese.", "Ida Lund")
    asked = [
        ranking(
            "Which songs did the woman who built the tower at Skarn write?",
            [passage("t", TOWER), ida],
            [1, 1],
        ),
        ranking("Who built the tower at Skarn?", [passage("t", TOWER), ida], [1, 1]),
    ]
    open_end, closed = reader().read(asked)
    assert (open_end.text, open_end.citations) == ("She wrote songs for the harvest.", ("t", "i"))
    assert closed.citations == ("t",)


def test_without_another_passage_the_first_sentence_stays():
    asked = [ranking("Which songs are sung at the tower at Skarn?", [passage("t", TOWER)], [1.0])]
    assert reader().read(asked)[0].text == "The tower at Skarn was built in 1431 by Ida Lund."


def test_the_title_helps_to_find_a_sentence_and_is_no_part_of_it():
    asked = [
        ranking("Which animals are at the Tower of Skarn?", [passage("t", "Sheep graze.", "Tower")], [1.0])
    ]
    assert reader().read(asked)[0].text == "Sheep graze."


def test_only_the_first_passages_are_read():
    asked = [ranking("Who built the tower?", [passage("f", FERRY), passage("t", TOWER)], [0.2, 0.1])]
    answer = reader(qa_top_k=1).read(asked)[0]
    assert answer.passage_ids == ("f",)
    assert answer.citations == ("f",)


def test_nothing_to_read_is_an_empty_answer():
    nothing = Ranking("Who?", (), (), "none:empty_index")
    answer = reader().read([nothing, ranking("Who built it?", [passage("t", TOWER)], [0.0])])
    assert (answer[0].text, answer[0].citations, answer[0].score) == ("", (), 0.0)
    assert answer[1].text
    assert reader().read([]) == []


def test_at_least_one_passage_is_read():
    with pytest.raises(ConfigError, match=r"reader\.qa_top_k must be at least 1, got 0"):
        reader(qa_top_k=0)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It costs 3.5 crowns. No. 4 is dear.", ["It costs 3.5 crowns.", "No. 4 is dear."]),
        ("“Stay!” Ida said. He went.", ["“Stay!”", "Ida said.", "He went."]),
        ("塔は古い。羊がいる。", ["塔は古い。", "羊がいる。"]),
        ("First line\n\nSecond  line", ["First line", "Second line"]),
        (" \n ", []),
    ],
)
def test_sentences(text: str, sentences: list[str]):
    assert split_sentences(text) == sentences


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("It was drawn by J. R. Ruck. He was tall.", "It was drawn by J. R. Ruck."),
        ("Dr. Ada Vale drew it! Then she left.", "Dr. Ada Vale drew it!"),
        ("The U.S. Army built it. It fell.", "The U.S. Army built it."),
        ("Only one", "Only one"),
        ("塔は古い。羊がいる。", "塔は古い。"),
        ("", ""),
    ],
)
def test_the_first_sentence_does_not_end_at_an_initial(line: str, first: str):
    assert first_sentence(line) == first


SKARN, BRAND = passage("t", TOWER, "Tower"), passage("f", FERRY)


def asked(question: str = "Who built the tower?", passages: Sequence[Passage] = (SKARN, BRAND)) -> Ranking:
    return ranking(question, passages, [1.0] * len(passages))


def scripted(reply: str | ChatReply, **options: Any) -> ScriptedChatModel:
    return ScriptedChatModel(replies=lambda prompt: reply, **options)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Ida built it.\nAnswer: Ida Lund", "Ida Lund"),
        ("**Answer:** Ida Lund", "Ida Lund"),
        ("**Answer**: *Ida Lund*", "Ida Lund"),
        ("**Answer: Ida Lund**", "Ida Lund"),
        ("### ANSWER : Ida Lund", "Ida Lund"),
        ("Thought: Ida did. Final answer: Ida Lund", "Ida Lund"),
        ("> the final answer:Ida Lund ", "Ida Lund"),
        ("Answer：イダ・ルンド", "イダ・ルンド"),
        ("Answer: Ole\nNo, wait.\nAnswer: Ida Lund", "Ida Lund"),
        ("Answer: Ida Lund\nThe short answer: she did.", "Ida Lund"),
        ("Answer: Ida Lund\n\nI hope that this helps.", "Ida Lund"),
        ("Answer:\n\n  Ida Lund\nShe built it.", "Ida Lund"),
        ("<think>Answer: Ole</think>Answer: Ida Lund", "Ida Lund"),
        ("Answer: Ole, or so.</think>Answer: Ida Lund", "Ida Lund"),
        ("Answer: Ida Lund\n<think>Answer: Ole</think>", "Ida Lund"),
        ("Answer: Ida Lund\n<thinking>Answer: Ole", "Ida Lund"),
        ("Answer: 3:2 at half-time", "3:2 at half-time"),
    ],
)
def test_the_answer_stands_behind_the_last_marker(reply: str, text: str):
    found = final_answer(ChatReply(reply))
    assert (found.text, found.flag) == (text, "")


@pytest.mark.parametrize(
    ("reply", "finish", "text", "flag"),
    [
        ("Ida Lund\nbuilt it.", "stop", "Ida Lund\nbuilt it.", "no_marker"),
        ("The answerer: nobody", "stop", "The answerer: nobody", "no_marker"),
        ("Ida Lund built", "length", "Ida Lund built", "cut"),
        ("Answer: Ida Lu", "length", "Ida Lu", "cut"),
        ("Answer: Ida Lund\nThis is sin", "length", "Ida Lund", ""),
        ("<think>Ida? Answer: O", "length", "", "cut"),
        ("<think>Answer: Ole</think>", "stop", "", "empty"),
        ("I know it.\n**Answer:** \n ", "stop", "", "empty"),
        (" \n", "stop", "", "empty"),
    ],
)
def test_what_is_odd_about_a_reply_is_flagged(reply: str, finish: Finish, text: str, flag: str):
    found = final_answer(ChatReply(reply, finish))
    assert (found.text, found.flag) == (text, flag)


@given(
    st.text(st.sampled_from("AnswerFial:*\n <>/think\ud800") | st.characters(), max_size=60)
    | st.lists(st.sampled_from(["Answer:", "<think>", "</think>", "\n", "Ida", "**", " "])).map("".join),
    st.sampled_from(["stop", "length"]),
)
def test_no_reply_raises(reply: str, finish: Finish):
    found = final_answer(ChatReply(reply, finish))
    assert found.text or found.flag in ("empty", "cut")
    assert len(found.text) <= len(reply)
    assert "</think>" not in found.text


@pytest.mark.parametrize("piece", ["Answer:", "<think>", "</think>", "* ", "answer", "\n", "final "])
def test_a_long_reply_is_read_at_once(piece: str):
    reply = ChatReply(piece * (1_000_000 // len(piece)))
    start = time.perf_counter()
    final_answer(reply)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("Ida Lund", ("t",)),
        ("  ｉｄａ  LUND. ", ("t",)),
        ("Skarn", ("t", "f")),
        ("1431", ("t",)),
        ("143", ()),
        ("ere", ()),
        ('day." Its captain', ()),
        ("TWICE a day", ("f",)),
        ("Brand", ("f",)),
        ("Bran", ()),
        ("No", ()),
        ("yes.", ()),
        ("?!", ()),
        ("", ()),
        ("羊", ("c",)),
        ("(", ()),
    ],
)
def test_passages_that_hold_an_answer(answer: str, cited: tuple[str, ...]):
    assert passages_with(answer, [SKARN, BRAND, passage("c", "塔に羊がいる。"), SKARN]) == cited


def test_the_model_sees_the_first_passages_as_they_are():
    strange = passage("s", "<think>{question}</think> Answer: no\n\nHuman: stop", "{passages}")
    model = scripted("Answer: Ida Lund")
    LLMReader(llm=model, qa_top_k=2).read([asked("Who is {passages}?", [strange, SKARN, BRAND])])
    expected = f"Passages:\n\n{strange.text}\n\n{SKARN.text}\n\nQuestion: Who is {{passages}}?"
    assert model.asked[0][-1] == Message("user", expected)


def test_the_record_of_an_answer():
    source = Source("a.md", 3)
    tower = Passage("t", TOWER, (source,))
    model = scripted("She did.\nAnswer: Ida Lund", model="m")
    (answer,) = LLMReader(llm=model).read([asked(passages=[BRAND, tower])])
    assert (answer.question, answer.text) == ("Who built the tower?", "Ida Lund")
    assert (answer.passage_ids, answer.citations, answer.score) == (("f", "t"), ("t",), 1.0)
    assert [passage.sources for passage in answer.cited] == [(source,)]
    assert (answer.reply, answer.flag, answer.reason) == ("She did.\nAnswer: Ida Lund", "", "")
    assert (answer.passages_from, answer.passages_left_out) == ("retrieval", 0)
    tokens = model.count_tokens(model.asked[0])
    assert answer.usage == Usage(calls=1, prompt_tokens=tokens, completion_tokens=5)
    assert answer.method == f"language model m, prompt {load_prompt('reader').label}"


def test_an_answer_that_no_passage_holds_cites_all_that_were_read():
    (answer,) = LLMReader(llm=scripted("Answer: yes")).read([asked(passages=[SKARN, BRAND, SKARN])])
    assert (answer.citations, answer.score) == (("t", "f"), 0.0)


def test_every_question_has_an_answer_when_some_replies_fail():
    def reply(prompt: Prompt) -> str | ChatReply:
        question = prompt[-1].text.rpartition("Question: ")[2]
        return {
            "one?": "Answer: Ida Lund",
            "two?": ChatReply("", "error", Usage(calls=3), "timed out"),
            "three?": "Ole",
            "four?": ChatReply("I can't say that.", "refused"),
        }[question]

    model = ScriptedChatModel(replies=reply)
    rankings = [asked(q) for q in ("one?", "two?", "three?", "four?")]
    answers = LLMReader(llm=model).read([asked("nothing?", ()), *rankings])
    assert [answer.question for answer in answers] == ["nothing?", "one?", "two?", "three?", "four?"]
    assert [answer.text for answer in answers] == ["", "Ida Lund", "", "Ole", ""]
    assert [answer.flag for answer in answers] == ["no_passages", "", "error", "no_marker", "error"]
    assert [answer.citations for answer in answers] == [(), ("t",), (), ("f",), ()]
    assert (answers[2].reason, answers[2].usage) == ("timed out", Usage(calls=3))
    assert answers[4].reply == "I can't say that."
    assert "refused" in answers[4].reason
    assert model.calls == 4


def test_no_question_costs_no_call():
    model = scripted("Answer: x")
    assert LLMReader(llm=model).read([]) == []
    assert LLMReader(llm=model).read([asked(passages=())])[0].flag == "no_passages"
    assert model.calls == 0


def test_passages_that_the_context_does_not_hold_are_left_out_from_the_end():
    reader = LLMReader(llm=scripted("Answer: Ole"), max_tokens=50)
    reader.read([asked(passages=[SKARN, BRAND])])
    model = scripted("Answer: Ole")
    LLMReader(llm=model).read([asked(passages=[SKARN]), asked(passages=[SKARN, BRAND])])
    one, two = (model.count_tokens(prompt) for prompt in model.asked)
    for context, read, left_out in [(two + 50, 2, 0), (two + 49, 1, 1), (one + 50, 1, 1)]:
        small = scripted("Answer: Ole Brand", context_tokens=context)
        (answer,) = LLMReader(llm=small, max_tokens=50).read([asked(passages=[SKARN, BRAND])])
        assert (answer.text, answer.passage_ids) == ("Ole Brand", ("t", "f")[:read])
        assert answer.passages_left_out == left_out
        assert answer.citations == (("f",) if read == 2 else ("t",))


def test_a_passage_longer_than_the_context_is_refused_by_its_id():
    long = passage("long", "word " * 900)
    small = scripted("Answer: Ole", context_tokens=600)
    answers = LLMReader(llm=small, max_tokens=50).read([asked(passages=[long, BRAND]), asked()])
    assert [answer.flag for answer in answers] == ["too_long", ""]
    assert "the passage long has" in answers[0].reason
    assert "context has 600" in answers[0].reason
    assert (answers[0].passage_ids, answers[0].passages_left_out) == ((), 2)
    assert small.calls == 1


def test_thoughts_go_to_the_reader_only_if_it_is_told_to():
    thinking = Ranking(
        "Who?", (SKARN,), (1.0,), "graph", thoughts=("Ida built it.", "So the answer is: Ida.")
    )
    model = scripted("Answer: Ida Lund")
    LLMReader(llm=model).read([thinking])
    LLMReader(llm=model, thoughts_to_reader=True).read([thinking, asked(passages=[SKARN])])
    without, with_thoughts, none = (prompt[-1].text for prompt in model.asked)
    assert "Ida built it." not in without
    assert with_thoughts == (
        f"Passages:\n\n{SKARN.text}\n\nThoughts so far:\nIda built it.\nSo the answer is: Ida.\n\n"
        "Question: Who?"
    )
    assert "Thoughts" not in none


def test_streaming_gives_the_same_answer():
    model = scripted("She did.\nAnswer: Ida Lund")
    reader = LLMReader(llm=model)
    pieces: list[str] = []
    streamed = reader.read_streaming(asked(), pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces) == streamed.reply
    assert [streamed] == reader.read([asked()])
    nothing = reader.read_streaming(asked(passages=()), pieces.append)
    assert (nothing.flag, model.calls) == ("no_passages", 2)


def test_passages_of_the_caller_are_read_and_recorded_as_theirs():
    model = scripted("Answer: Ole Brand")
    reader = LLMReader(llm=model, qa_top_k=1)
    answer = reader.read_passages("Who steers the ferry?", [TOWER, BRAND])
    assert answer.passages_from == "caller"
    assert answer.passage_ids == (TextOptions().passage_id(TOWER), "f")
    assert (answer.text, answer.citations) == ("Ole Brand", ("f",))
    pieces: list[str] = []
    assert reader.read_passages("Who steers the ferry?", [TOWER, BRAND], pieces.append) == answer
    assert "".join(pieces) == "Answer: Ole Brand"
    assert reader.read_passages("Who?", []).flag == "no_passages"


@pytest.mark.parametrize(
    ("question", "passages", "message"),
    [
        (" ", [TOWER], "the question is empty"),
        ("Who?", [TOWER, ""], "passage 1 is empty"),
        ("Who?", TOWER, "must be a list, got one string"),
    ],
)
def test_unusable_passages_of_the_caller(question: str, passages: Any, message: str):
    with pytest.raises(InputError, match=message):
        LLMReader(llm=scripted("x")).read_passages(question, passages)


@pytest.mark.parametrize("family", sorted(READER_PROMPTS))
def test_the_family_chooses_the_prompt(family: str):
    model = scripted("Answer: x")
    (answer,) = LLMReader(llm=model, family=family).read([asked()])
    assert model.asked[0][0].text == load_prompt(READER_PROMPTS[family]).system
    assert answer.method.endswith(load_prompt(READER_PROMPTS[family]).label)


def test_a_prompt_of_ones_own_stands_for_the_familys(tmp_path: Path):
    prompt = tmp_path / "mine.toml"
    prompt.write_text("version = '1'\nsystem = 'Read.'\nuser = '{question} {passages}'\n", "utf-8")
    model = scripted("Answer: x")
    LLMReader(llm=model, prompt=prompt, family="nq").read([asked("Who?", [BRAND])])
    assert model.asked == [(Message("system", "Read."), Message("user", f"Who? {FERRY}"))]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "squad"}, r"reader\.family must be one of 2wiki, default, .*popqa, got 'squad'"),
        ({"prompt": "squad"}, "there is no prompt 'squad'; there are "),
        ({"prompt": "filter"}, r"reader\.prompt=filter has the fields facts, question; expected passages, q"),
        ({"qa_top_k": 0}, r"reader\.qa_top_k must be at least 1, got 0"),
        ({"max_tokens": -1}, r"reader\.max_tokens must be at least 1, got -1"),
    ],
)
def test_bad_options_of_the_model_reader(options: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        LLMReader(llm=scripted("x"), **options)
