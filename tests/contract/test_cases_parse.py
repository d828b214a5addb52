"""The collected cases of what models send, each through the extractor into an index, with a fake model."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from hipporag_torch.chat import ChatReply, Prompt
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.extractors.openie import OpenIEExtractor
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.indexer import Indexer
from hipporag_torch.llms.scripted import ScriptedChatModel
from hipporag_torch.reports import AddReport
from hipporag_torch.retrievers.dense import DenseRetriever
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.types import Extraction, Triple

LENA = "Lena Hart lives in Oslo."
ENTITIES = '{"entities": []}'
Reply = str | ChatReply


class Memory:
    """An index over passages whose two replies are given; `asked` are the passages that cost calls."""

    def __init__(self, replies: Mapping[str, tuple[Reply, Reply]]) -> None:
        self.replies = dict(replies)
        self.asked: list[str] = []
        self._embedder = embedder = HashingEmbedder(dim=64)
        extractor = OpenIEExtractor(llm=ScriptedChatModel(replies=self._reply))
        self._memory = HippoRAG(
            indexer=Indexer(embedder=embedder, extractor=extractor),
            make_retriever=lambda index: HippoRAGRetriever(index=index, embedder=embedder),
        )

    def _reply(self, prompt: Prompt) -> Reply:
        body, _, entities = prompt[-1].text.removeprefix("Passage:\n\n").partition("\n\nNamed entities:\n\n")
        self.asked.append(body)
        return self.replies[body][1 if entities else 0]

    def add(self) -> AddReport:
        return self._memory.add(list(self.replies))

    def extraction(self, text: str) -> Extraction:
        index = self._memory.index
        (row,) = (row for row, passage in enumerate(index.passages) if passage.text == text)
        return index.extractions[row]

    @property
    def phrases(self) -> set[str]:
        return set(self._memory.index.phrases)

    def found_dense(self, question: str) -> list[str]:
        retriever = DenseRetriever(index=self._memory.index, embedder=self._embedder)
        return [passage.text for passage in retriever.retrieve([question], top_k=1)[0].passages]

    def found(self, question: str) -> list[str]:
        (ranking,) = self._memory.retrieve([question], top_k=10)
        return [passage.text for passage in ranking.passages]


def extraction_of(entities: Reply = ENTITIES, triples: Reply = '{"triples": []}') -> Extraction:
    memory = Memory({LENA: (entities, triples)})
    memory.add()
    assert memory.found("Where does Lena Hart live?") == [LENA]
    return memory.extraction(LENA)


def stating(*triples: Sequence[str]) -> tuple[str, str]:
    return ENTITIES, json.dumps({"triples": triples}, ensure_ascii=False)


def test_case_parse_01_entities_in_a_code_fence() -> None:
    extraction = extraction_of('```json {"named_entities": ["Lena Hart","Oslo"]} ```')
    assert (extraction.entities, extraction.status) == (("Lena Hart", "Oslo"), "ok")


def test_case_parse_03_entities_as_a_bare_list() -> None:
    assert extraction_of('["Lena Hart", "Oslo"]').entities == ("Lena Hart", "Oslo")


def test_case_parse_04_closing_tag_only() -> None:
    extraction = extraction_of('I should list the names. </think> {"named_entities": ["Lena Hart"]}')
    assert extraction.entities == ("Lena Hart",)


def test_case_parse_06_triples_cut_by_the_length_limit() -> None:
    cut = '{"triples": [["a1","r1","b1"],["a2","r2","b2"],["a3","r3'
    extraction = extraction_of(triples=ChatReply(cut, "length"))
    assert extraction.triples == (Triple("a1", "r1", "b1"), Triple("a2", "r2", "b2"))
    assert (extraction.status, extraction.dropped) == ("truncated", {})


def test_case_parse_08_empty_reply_for_one_of_three_passages() -> None:
    memory = Memory(
        {
            "Ada founded Northwind.": stating(["Ada", "founded", "Northwind"]),
            "Rye bread feeds printers.": (ENTITIES, ""),
            "Tove joined Northwind.": stating(["Tove", "joined", "Northwind"]),
        }
    )
    report = memory.add()
    assert [failed.reason for failed in report.failed] == ["the call for triples failed: the reply is empty"]
    assert memory.extraction("Rye bread feeds printers.").status == "failed"
    assert memory.phrases == {"ada", "northwind", "tove"}
    assert memory.found_dense("rye bread feeds printers")[0] == "Rye bread feeds printers."
    assert len(memory.found("rye bread feeds printers")) == 3


def test_case_parse_10_code_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "__import__('os').system('touch HACKED')"
    memory = Memory({"One.": stating([code, "is", "x"]), "Two.": (ENTITIES, code)})
    report = memory.add()
    memory.found(code)
    assert memory.extraction("One.").triples == (Triple(code, "is", "x"),)
    assert [failed.reply for failed in report.failed] == [code]
    assert list(tmp_path.iterdir()) == []


def test_case_triple_01_objects_with_named_parts() -> None:
    reply = '{"triples": [{"subject":"Marie","predicate":"born in","object":"Warsaw"}]}'
    assert extraction_of(triples=reply).triples == (Triple("Marie", "born in", "Warsaw"),)


def test_case_triple_02_wrong_arity_is_counted_in_the_report() -> None:
    memory = Memory({LENA: (ENTITIES, '{"triples": [["a","b"],["a","b","c","d"],["x","y","z"]]}')})
    report = memory.add()
    assert memory.extraction(LENA).triples == (Triple("x", "y", "z"),)
    assert (report.facts_added, report.dropped) == (1, {"wrong_arity": 2})


def test_case_triple_05_self_talk_as_an_entity() -> None:
    talk = ("Wait, actually the correct name should be " * 10)[:400]
    extraction = extraction_of(json.dumps({"entities": [talk, "Oslo"]}), stating([talk, "is", "x"])[1])
    assert (extraction.entities, extraction.triples, extraction.status) == (("Oslo",), (), "ok")
    assert extraction.dropped == {"entity:too_long": 1, "too_long": 1}


def test_case_unicode_01_chinese() -> None:
    beijing, shanghai = "北京位于中国。", "上海位于中国。"
    memory = Memory({beijing: stating(["北京", "位于", "中国"]), shanghai: stating(["上海", "位于", "中国"])})
    memory.add()
    assert memory.phrases == {"北京", "上海", "中国"}
    assert memory.found("北京")[0] == beijing


def test_case_unicode_03_c_and_its_relatives() -> None:
    memory = Memory(
        {LENA: stating(["C", "is a", "language"], ["C++", "is a", "language"], ["C#", "is a", "language"])}
    )
    memory.add()
    assert memory.phrases == {"c", "c++", "c#", "language"}


def test_case_unicode_05_one_entity_in_three_spellings() -> None:
    names = ["Electrons", "electrons", " electrons "]
    memory = Memory({LENA: stating(*([name, "have", "charge"] for name in names))})
    memory.add()
    assert memory.phrases == {"electrons", "charge"}


def test_case_unicode_06_control_tokens_are_text() -> None:
    text = "The marker <|endoftext|> ends, <|im_start|> begins."
    memory = Memory({text: stating(["<|endoftext|>", "ends", "texts"])})
    memory.add()
    assert memory.asked == [text, text]
    assert memory.extraction(text).triples == (Triple("<|endoftext|>", "ends", "texts"),)
    assert memory.found("Which marker begins?") == [text]


def test_case_state_06_a_malformed_reply_is_asked_for_again() -> None:
    texts = ["Ada founded Northwind.", "Rye bread feeds printers.", "Tove joined Northwind."]
    good = {text: stating(text.rstrip(".").split(maxsplit=2)) for text in texts}
    memory = Memory(good | {texts[1]: (ENTITIES, '{"triples": [["Rye", "bread" "feeds"]]}')})
    assert len(memory.add().failed) == 1
    memory.replies = good
    memory.asked.clear()
    assert memory.add().failed == ()
    assert memory.asked == [texts[1]] * 2
    assert memory.extraction(texts[1]).triples == (Triple("Rye", "bread", "feeds printers"),)


def test_every_case_of_this_part_is_tested(shared: Path) -> None:
    path = shared / "cases" / "cases.jsonl"
    if not path.is_file():
        pytest.skip(f"no cases in {path}")
    ids = {json.loads(line)["id"] for line in path.read_text("utf-8").splitlines()}
    tests: Mapping[str, Callable[..., None]] = globals()
    names = (re.match(r"test_case_([a-z]+)_(\d+)_", name) for name in tests)
    tested = {f"{match[1]}-{match[2]}" for match in names if match}
    concerned = {case for case in ids if case.split("-")[0] in ("parse", "triple", "unicode")}
    assert concerned | {"state-06"} == tested
    assert len(concerned) > 10
