"""Adding documents through an endpoint that misbehaves: what it costs, what is kept, what is asked again.

Everything is real but the model: the SDK, HTTP, retries, cache, budget, staging, the index on the disk.
"""

import gc
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from hipporag_torch.chat import ChatReply
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import BackendError
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.indexer import Indexer
from hipporag_torch.llms.budget import Budget
from hipporag_torch.llms.pricing import Prices
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Triple

from ..llm_stub import Request, Response, StubServer, completion, failure
from .stub_lab import MAX_TOKENS, Lab, Model

COVERED = (
    "cost-01",
    "cost-03",
    "state-04",
    "state-06",
    "unicode-01",
    "unicode-03",
    "unicode-05",
    "unicode-06",
)
TEXTS = [
    "Ada founded Northwind.",
    "Bergen lies in Norway.",
    "Tove joined Northwind.",
    "Glaciers cover Svalbard.",
    "Rye feeds printers.",
    "Northwind prints atlases.",
]


@pytest.fixture
def answers() -> Model:
    return Model()


@pytest.fixture
def stub(answers: Model) -> Iterator[StubServer]:
    with StubServer(answers) as server:
        yield server


@pytest.fixture
def lab(tmp_path: Path, stub: StubServer, answers: Model) -> Lab:
    return Lab(tmp_path, stub, answers)


@pytest.fixture
def cases(shared: Path) -> list[dict[str, str]]:
    file = shared / "cases" / "cases.jsonl"
    if not file.is_file():
        pytest.skip(f"there is no {file}, the list of cases that these tests are held against")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Every file under `folder` with its content."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def statuses(memory: HippoRAG) -> Counter[str]:
    assert len(memory.index.extractions) == len(memory.index.passages)
    return Counter(extraction.status for extraction in memory.index.extractions)


def stated(memory: HippoRAG) -> dict[str, tuple[Triple, ...]]:
    index = memory.index
    return {p.text: e.triples for p, e in zip(index.passages, index.extractions, strict=True)}


def paid(memory: HippoRAG) -> int:
    """Calls that the records of the index say were paid for."""
    return sum(extraction.usage.calls for extraction in memory.index.extractions)


def test_every_case_that_is_claimed_is_in_the_list_and_has_a_test(cases: list[dict[str, str]]) -> None:
    tests = re.findall(r"^def test_([a-z]+)_(\d\d)_", Path(__file__).read_text("utf-8"), re.M)
    assert {"-".join(match) for match in tests} == set(COVERED)
    ids = {case["id"] for case in cases}
    assert set(COVERED) <= ids
    concerned = {case for case in ids if case.split("-")[0] in ("cost", "unicode")}
    assert concerned <= set(COVERED)


def test_cost_01_a_plan_counts_what_is_missing_calls_nothing_and_writes_nothing(lab: Lab) -> None:
    ten = TEXTS + [f"Station {number} measures wind." for number in range(4)]
    with lab.open() as memory:
        memory.add(ten[:4])
        assert lab.answers.calls() == 8
        before = bytes_of(lab.index.parent)
        plan = memory.plan_add(ten)
        assert (plan.passages_new, plan.passages_known, plan.extractor_calls) == (6, 4, 12)
        assert plan.usage.calls == 12
        assert plan.usage.completion_tokens == 12 * MAX_TOKENS
        assert plan.usage.prompt_tokens > 12 * 100
        prices = Prices(prompt=1e6, completion=2e6)
        assert prices.money(plan.usage) == plan.usage.prompt_tokens + 2 * 12 * MAX_TOKENS
        assert bytes_of(lab.index.parent) == before
    assert lab.answers.calls() == 0


@pytest.mark.slow
def test_cost_03_rate_limits_are_waited_out_and_charged_once(lab: Lab) -> None:
    limited = failure(429, "slow down")
    limited.headers["Retry-After"] = "2"
    lab.answers.faults[TEXTS[0], "entities"] = [limited, limited]
    budget = Budget(calls=100)
    with lab.open(budget=budget, max_retries=5) as memory:
        assert memory.add(TEXTS).failed == ()
        assert statuses(memory) == {"ok": len(TEXTS)}
        assert paid(memory) == budget.spent["calls"] == 2 * len(TEXTS)
    assert lab.model.retries == 2
    assert lab.answers.asked[TEXTS[0], "entities"] == 3
    at = [request.at for request in lab.stub.requests if request.last == f"Passage:\n\n{TEXTS[0]}"]
    assert all(later - sooner >= 2 for sooner, later in pairwise(at))


def test_state_06_malformed_json_is_not_cached_and_asked_for_again_alone(lab: Lab) -> None:
    cut = Response(completion('{"triples": [["Bergen", "lies" "in'))
    lab.answers.faults[TEXTS[1], "triples"] = [cut]
    with lab.open(temperature=0.0) as memory:
        (failed,) = memory.add(TEXTS).failed
        assert (failed.reply, failed.permanent) == ('{"triples": [["Bergen", "lies" "in', False)
    assert lab.answers.calls() == 2 * len(TEXTS)
    with lab.open(temperature=0.0) as memory:
        assert memory.add(TEXTS).failed == ()
        assert statuses(memory) == {"ok": len(TEXTS)}
        assert stated(memory)[TEXTS[1]] == (Triple("Bergen", "lies", "in Norway"),)
    # Its entities were good, and so are cached.
    assert lab.answers.asked == {(TEXTS[1], "triples"): 1}


def test_a_malformed_reply_for_entities_is_asked_for_again_alone(lab: Lab) -> None:
    lab.answers.faults[TEXTS[1], "entities"] = [Response(completion("I cannot list names."))]
    with lab.open() as memory:
        assert len(memory.add(TEXTS).failed) == 1
        lab.answers.asked.clear()
        assert memory.retry_failed().failed == ()
    assert lab.answers.asked == {(TEXTS[1], "entities"): 1, (TEXTS[1], "triples"): 1}


def test_a_budget_stops_an_add_before_it_is_exceeded_and_the_next_pays_for_the_rest(lab: Lab) -> None:
    budget = Budget(calls=8)
    with lab.open(budget=budget) as memory:
        report = memory.add(TEXTS)
        assert "8 of 8 calls spent, 0 left; 4 of 6 prompts were not asked" in report.stopped
        assert (report.passages_added, len(report.left)) == (2, 4)
        assert len(memory.index.passages) == 2
    assert lab.answers.calls() == budget.spent["calls"] == 8
    with lab.open(budget=Budget(calls=4)) as memory:
        assert memory.add(TEXTS).failed == ()
        assert statuses(memory) == {"ok": len(TEXTS)}
    assert lab.answers.asked.total() == 4
    assert all(kind == "triples" for _, kind in lab.answers.asked)


def test_without_a_cache_a_budget_stop_still_keeps_the_passages_that_were_finished(lab: Lab) -> None:
    with lab.open(budget=Budget(calls=7), cached=False, block_size=1) as memory:
        report = memory.add(TEXTS)
        assert (report.passages_added, len(report.left)) == (3, 3)
    finished = {text for text, kind in lab.answers.asked if kind == "triples"}
    assert (len(finished), lab.answers.calls()) == (3, 7)
    with lab.open(cached=False) as memory:
        memory.add(TEXTS)
        assert statuses(memory) == {"ok": len(TEXTS)}
    assert {text for text, _ in lab.answers.asked} == set(TEXTS) - finished
    assert lab.answers.asked.total() == 2 * 3


def test_a_budget_of_tokens_counts_what_the_endpoint_counted(lab: Lab) -> None:
    with lab.open() as memory:
        memory.add(TEXTS)
        tokens = sum(e.usage.prompt_tokens + e.usage.completion_tokens for e in memory.index.extractions)
    other = Lab(lab.index.parent / "other", lab.stub, lab.answers)
    budget = Budget(tokens=10**6)
    with other.open(budget=budget) as memory:
        memory.add(TEXTS)
    assert budget.spent["tokens"] == tokens
    assert tokens >= 7 * 2 * len(TEXTS)


def test_errors_in_the_middle_fail_their_passages_and_heal(lab: Lab) -> None:
    down = failure(500, "out of memory")
    lab.answers.faults[TEXTS[2], "entities"] = [down]
    lab.answers.faults[TEXTS[4], "triples"] = [down]
    with lab.open(concurrency=1) as memory:
        report = memory.add(TEXTS)
        assert len(report.failed) == 2
        assert all("500" in f.reason and not f.permanent for f in report.failed)
        assert statuses(memory) == {"ok": 4, "failed": 2}
        assert {hit.text for hit in memory.retrieve(["Who joined?"], top_k=9)[0].passages} == set(TEXTS)
        lab.answers.asked.clear()
        assert memory.add(TEXTS).failed == ()
        assert statuses(memory) == {"ok": 6}
    assert lab.answers.asked == {
        (TEXTS[2], "entities"): 1,
        (TEXTS[2], "triples"): 1,
        (TEXTS[4], "triples"): 1,
    }


def test_an_endpoint_that_goes_down_for_good_is_not_asked_on_and_on(lab: Lab) -> None:
    """Triples are never answered, so the second half of the work cannot begin."""
    for text in TEXTS:
        lab.answers.faults[text, "triples"] = [failure(503, "overloaded")]
    with lab.open(concurrency=1) as memory:
        with pytest.raises(BackendError, match=r"answered none of the first 3 prompts.*503"):
            memory.add(TEXTS)
        assert memory.index.passages == ()
        assert lab.answers.calls() == len(TEXTS) + 3
        lab.answers.faults.clear()
        memory.add(TEXTS)
        assert statuses(memory) == {"ok": 6}
    assert {kind for _, kind in lab.answers.asked} == {"triples"}
    assert lab.answers.asked.total() == 6


def test_an_endpoint_that_goes_down_after_some_replies_fails_the_rest_unasked(lab: Lab) -> None:
    texts = sorted(TEXTS, key=TextOptions().passage_id)
    for text in texts[2:]:
        lab.answers.faults[text, "entities"] = [failure(503, "overloaded")]
    with lab.open(concurrency=1) as memory:
        report = memory.add(texts)
        assert statuses(memory) == {"ok": 2, "failed": 4}
        assert sum("not asked" in f.reason for f in report.failed) == 1
        assert lab.answers.calls() == 2 + 3 + 2
        lab.answers.faults.clear()
        assert memory.retry_failed().failed == ()
    assert lab.answers.asked.total() == 2 * 4


def test_unicode_01_chinese_survives_the_wire(lab: Lab) -> None:
    beijing, shanghai = "北京位于中国。", "上海位于中国。"
    lab.answers.said = {beijing: [["北京", "位于", "中国"]], shanghai: [["上海", "位于", "中国"]]}
    with lab.open() as memory:
        memory.add([beijing, shanghai])
        assert set(memory.index.phrases) == {"北京", "上海", "中国"}
        (ranking,) = memory.retrieve(["北京"])
        assert ranking.passages[0].text == beijing


def test_unicode_03_c_and_its_relatives_stay_apart(lab: Lab) -> None:
    text = "C, C++ and C# are languages."
    lab.answers.said[text] = [[name, "is a", "language"] for name in ("C", "C++", "C#")]
    with lab.open() as memory:
        memory.add([text])
        assert set(memory.index.phrases) == {"c", "c++", "c#", "language"}


def test_unicode_05_three_spellings_are_one_entity(lab: Lab) -> None:
    text = "Electrons have charge."
    lab.answers.said[text] = [[name, "have", "charge"] for name in ("Electrons", "electrons", " electrons ")]
    with lab.open() as memory:
        assert memory.add([text]).facts_added == 1
        assert set(memory.index.phrases) == {"electrons", "charge"}


def test_unicode_06_control_tokens_are_sent_and_kept_as_they_are(lab: Lab) -> None:
    text = "The marker <|endoftext|> ends, <|im_start|> begins. <think>"
    lab.answers.said[text] = [["<|endoftext|>", "ends", "texts"]]
    with lab.open() as memory:
        memory.add([text])
        (ranking,) = memory.retrieve(["Which marker begins?"])
        assert [passage.text for passage in ranking.passages] == [text]
        assert stated(memory)[text] == (Triple("<|endoftext|>", "ends", "texts"),)
    assert {passage for passage, _ in lab.answers.asked} == {text}


@pytest.mark.parametrize("cached", [True, False])
def test_half_a_surrogate_pair_in_a_reply_costs_no_more_than_its_entry(lab: Lab, cached: bool) -> None:
    """JSON can write it, though it is no Unicode text; raw, it is replaced as soon as the reply is there."""
    broken = json.dumps({"triples": [["Ada", "founded", "\ud83d"], ["Ada", "founded", "Northwind"]]})
    unescaped = broken.replace("\\ud83d", "\ud83d")
    lab.answers.faults[TEXTS[0], "triples"] = [Response(completion(broken))]
    lab.answers.faults[TEXTS[2], "triples"] = [Response(completion(unescaped))]
    lab.answers.faults[TEXTS[3], "triples"] = [Response(completion("no JSON \ud83d"))]
    with lab.open(cached=cached) as memory:
        report = memory.add(TEXTS)
        assert report.dropped == {"bad_unicode": 1}
        assert [failed.reply for failed in report.failed] == ["no JSON \ufffd"]
        assert statuses(memory) == {"ok": 5, "failed": 1}
        founded = Triple("Ada", "founded", "Northwind")
        assert stated(memory)[TEXTS[0]] == (founded,)
        assert stated(memory)[TEXTS[2]] == (Triple("Ada", "founded", "\ufffd"), founded)
        assert memory.add(TEXTS).failed == ()


ADDING = """
import sys
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.extractors.openie import OpenIEExtractor
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.llms.openai import OpenAIChatModel
path, url, tokens, *texts = sys.argv[1:]
llm = OpenAIChatModel(
    model="m", base_url=url, max_tokens=int(tokens), max_retries=0, give_up_after=3, concurrency=4
)
extractor = OpenIEExtractor(llm=llm, max_tokens=int(tokens), block_size=1)
with HippoRAG.open(path, embedder=HashingEmbedder(dim=64), extractor=extractor) as memory:
    memory.add(texts)
"""


@pytest.mark.slow
@pytest.mark.parametrize("requests", [4, 9])
def test_state_04_a_killed_add_repays_no_finished_extraction(lab: Lab, requests: int) -> None:
    """Killed while it waits for a reply; a new process goes on."""
    waiting = Response(completion("never"), delay=1.0)
    command = [sys.executable, "-c", ADDING, str(lab.index), lab.stub.url, str(MAX_TOKENS), *TEXTS]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:

        def kill_at(request: Request) -> Response:
            if lab.answers.asked.total() == requests:
                os.kill(process.pid, signal.SIGKILL)
                return waiting
            return lab.answers(request)

        lab.stub.behave = kill_at
        assert process.wait(120) == -signal.SIGKILL
    finished = {text for text, kind in lab.answers.asked if kind == "triples"}
    assert len(finished) == requests // 2
    lab.stub.behave = lab.answers
    lab.answers.asked.clear()
    with lab.open(cached=False) as memory:
        assert memory.index.passages == ()
        assert memory.add(TEXTS).failed == ()
        assert statuses(memory) == {"ok": len(TEXTS)}
        assert paid(memory) == 2 * len(TEXTS)
    assert {text for text, _ in lab.answers.asked} == set(TEXTS) - finished
    assert lab.answers.asked.total() == 2 * (len(TEXTS) - len(finished))


@pytest.mark.slow
def test_two_thousand_passages_are_all_accounted_for_and_only_a_block_is_held(lab: Lab) -> None:
    texts = [f"Station{number} measures wind{number}." for number in range(2000)]
    lab.stub.remember = False
    lab.answers.faults[texts[7], "triples"] = [failure(500, "once")]
    held: list[int] = []

    def watch(stage: str, done: int, total: int) -> None:
        if stage == "extract" and done % 250 == 0:
            held.append(sum(type(thing) is ChatReply for thing in gc.get_objects()))

    memory = HippoRAG(
        indexer=Indexer(embedder=HashingEmbedder(dim=64), extractor=lab.extractor(concurrency=32))
    )
    report = memory.add(texts, watch)
    assert report.passages_added == 2000
    assert statuses(memory) == {"ok": 1999, "failed": 1}
    assert ["500" in f.reason for f in report.failed] == [True]
    assert lab.answers.asked.total() == 4000
    assert lab.stub.most_in_flight <= 32
    # 4,000 replies came; those of a block's passages are held, and some more that wait to be taken.
    assert len(held) == 8
    assert max(held) <= 2 * 256 + 2 * 32
