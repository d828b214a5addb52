"""The service without MCP: reads during writes, one write after the other, confirmed where it costs much."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hipporag_torch import Document, HippoRAG
from hipporag_torch.errors import BackendError, ConfigError, HippoRAGError, InputError, StoreError
from hipporag_torch.protocols import no_progress
from hipporag_torch.service.confirmation import Confirmations
from hipporag_torch.service.limits import Limits
from hipporag_torch.service.memory_service import MemoryService
from hipporag_torch.service.write_queue import ServiceClosed, WriteStopped
from hipporag_torch.store.store import Store

from .sayings import DOCUMENTS, FailsFirst, Sayings, opened, service_on

MANY = [Document(f"Ada wrote book{n}", "books.md") for n in range(60)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "index"


def held(directory: Path) -> set[str]:
    with HippoRAG.open(directory, read_only=True) as memory:
        assert not memory.check().findings
        return {passage.text for passage in memory.index.passages}


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def found(service: MemoryService, question: str) -> list[str]:
    return [passage.text for passage in service.retrieve(question, top_k=3)[1].passages]


def test_a_question_is_answered_from_the_state_before_while_a_write_runs(directory: Path):
    model = Sayings(gate=threading.Event())
    with service_on(directory, model) as service:
        model.gate.set()
        service.index(DOCUMENTS).result(10)
        model.gate.clear()
        write = service.index([Document("Tove maps glaciers")])
        until(lambda: bool(model.asked) and model.asked[-1] == "Tove maps glaciers")
        assert service.state().writing == "index"
        generation = service.retrieve("Who maps glaciers?")[0].generation
        assert "Tove maps glaciers" not in found(service, "Who maps glaciers?")
        assert service.index_stats().counts.passages == 3
        assert service.explain("Who founded Northwind?")[1].passages
        assert service.rag_qa("Who founded Northwind?")[2].text
        assert not write.is_done
        model.gate.set()
        write.result(10)
        assert found(service, "Who maps glaciers?")[0] == "Tove maps glaciers"
        assert service.retrieve("Who maps glaciers?")[0].generation == generation + 1


def test_a_write_that_was_cancelled_leaves_the_index_as_it_was_and_what_it_paid_for(directory: Path):
    model = Sayings(gate=threading.Event())
    with service_on(directory, model) as service:
        model.gate.set()
        service.index(DOCUMENTS[:1]).result(10)
        model.gate.clear()
        running, waiting = service.index(DOCUMENTS[1:]), service.delete(source_ids=["ada.md"])
        until(lambda: len(model.asked) == 2)
        waiting.cancel()
        running.cancel()
        for write in (running, waiting):
            with pytest.raises(WriteStopped):
                write.result(10)
        assert service.index_stats().counts.passages == 1
        model.gate.set()
        service.index(DOCUMENTS[1:]).result(10)
    assert held(directory) == {document.text for document in DOCUMENTS}


def test_closing_rolls_the_running_write_back_and_the_index_is_whole(directory: Path):
    model = Sayings(gate=threading.Event())
    service = service_on(directory, model)
    model.gate.set()
    service.index(DOCUMENTS[:1]).result(10)
    model.gate.clear()
    write = service.index(DOCUMENTS[1:])
    until(lambda: len(model.asked) == 2)
    service.close()
    with pytest.raises(WriteStopped):
        write.result(0)
    assert held(directory) == {DOCUMENTS[0].text}
    with pytest.raises(ServiceClosed):
        service.index(DOCUMENTS)


def test_what_another_process_commits_is_found(directory: Path):
    with service_on(directory) as service, opened(directory, Sayings()).memory as other:
        service.index(DOCUMENTS).result(10)
        other.refresh()
        other.add(["Tove maps glaciers"])
        until(lambda: found(service, "Who maps glaciers?")[0] == "Tove maps glaciers")
        service.update("ada.md", [Document("Ada left Bergen")]).result(10)
        assert service.index_stats().counts.passages == 4


def test_a_failed_load_is_told_by_the_calls_that_wait_and_retried_by_the_next(directory: Path):
    opening = FailsFirst(directory)
    with MemoryService(store=Store(directory), open_memory=opening) as service:
        service.start()
        until(lambda: opening.calls == 1)
        # The failure of the start was nobody's; this call loads again.
        service.index(DOCUMENTS).result(10)
        assert opening.calls == 2
        assert found(service, "Who founded Northwind?")


def test_a_call_that_finds_no_model_gets_its_error(directory: Path):
    def opening() -> None:
        raise BackendError("no model; start it")

    with MemoryService(store=Store(directory), open_memory=opening) as service:  # type: ignore[arg-type]
        for call in (lambda: service.retrieve("Who?"), service.index_stats, service.index(DOCUMENTS).result):
            with pytest.raises(BackendError, match="no model; start it"):
                call()


def test_an_index_that_exists_tells_of_itself_without_a_model(directory: Path):
    with service_on(directory) as service:
        service.index(DOCUMENTS).result(10)
    with MemoryService(store=Store(directory), open_memory=FailsFirst(directory)) as service:
        assert service.index_stats().counts.passages == 3
        assert not service.state().loaded


def test_more_new_passages_than_go_without_need_the_token_of_a_dry_run(directory: Path):
    model = Sayings()
    with service_on(directory, model, above=50) as service:
        with pytest.raises(InputError, match=r"60 passages \(120 calls of a language model\)"):
            service.index(MANY).result(10)
        planned = service.plan_index(MANY)
        assert (planned.change.passages_new, planned.change.extractor_calls) == (60, 120)
        assert planned.confirm
        assert not model.asked
        with pytest.raises(InputError, match="another plan"):
            service.index(MANY[:55], confirm=planned.confirm).result(10)
        with pytest.raises(InputError, match="another plan"):
            service.index([*MANY[:-1], Document(MANY[-1].text, "other.md")], confirm=planned.confirm).result(
                10
            )
        assert not model.asked
        assert service.index(MANY, confirm=planned.confirm).result(10).passages_added == 60
        with pytest.raises(InputError, match="used already"):
            service.index(MANY, confirm=planned.confirm).result(10)
        assert service.plan_index(MANY).confirm is None
        assert service.index(MANY).result(10).passages_known == 60


def test_a_token_does_not_outlive_a_change_of_the_index(directory: Path):
    with service_on(directory, above=0) as service:
        confirm = service.plan_index(DOCUMENTS[:1]).confirm
        service.index(DOCUMENTS[:1], confirm=confirm).result(10)
        first, second = (service.plan_update("ada.md", [Document(text)]).confirm for text in ("a", "b"))
        service.update("ada.md", [Document("a")], confirm=first).result(10)
        with pytest.raises(InputError, match="index has changed"):
            service.update("ada.md", [Document("b")], confirm=second).result(10)
        assert held(directory) == {"a"}


def test_two_calls_with_one_token_at_once_are_done_once(directory: Path):
    model = Sayings()
    with service_on(directory, model, above=0) as service:
        confirm = service.plan_index(DOCUMENTS).confirm
        writes = [service.index(DOCUMENTS, confirm=confirm) for _ in range(2)]
        assert writes[0].result(10).passages_added == 3
        with pytest.raises(InputError, match=r"used already|changed"):
            writes[1].result(10)
        assert len(model.asked) == 3


def test_a_replaced_source_is_never_without_its_text_and_shared_facts_stay(directory: Path):
    with service_on(directory) as service:
        both = [Document("Ana works_at Acme", name) for name in ("d1", "d2")]
        service.index([*both, Document("Acme based_in Oslo", "d1")]).result(10)
        report = service.plan_delete(source_ids=["d1"])[1]
        assert (len(report.passages_removed), len(report.passages_kept)) == (1, 1)
        assert service.delete(source_ids=["d1", "d9"]).result(10).not_found == ("d9",)
        service.update("d2", [Document("Ana left Acme")]).result(10)
    assert held(directory) == {"Ana left Acme"}


def test_a_folder_is_synced_file_by_file_and_each_is_found_before_the_next(tmp_path: Path, directory: Path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for number, name in enumerate(("a.md", "b.md", "c.md")):
        (folder / name).write_text(f"Ada wrote book{number}\n")
    model = Sayings(gate=threading.Event())
    with service_on(directory, model, roots=[tmp_path]) as service:
        write = service.index_folder(str(folder))
        until(lambda: len(model.asked) == 1)
        assert not found(service, "Who wrote a book?")
        model.gate.set()
        assert write.result(10).counts == {"added": 3}
        (folder / "b.md").write_text("Ada wrote letters\n")
        (folder / "c.md").unlink()
        planned = service.plan_folder(str(folder), prune=True, progress=no_progress)
        assert (planned.plan.passages_new, planned.plan.passages_removed) == (1, 2)
        report = service.index_folder(str(folder), prune=True).result(10)
        assert report.counts == {"removed": 1, "replaced": 1, "unchanged": 1}
    assert {text.strip() for text in held(directory)} == {"Ada wrote book0", "Ada wrote letters"}


def test_a_folder_needs_the_token_of_its_contents(tmp_path: Path, directory: Path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("Ada wrote a book\n")
    with service_on(directory, above=0, roots=[tmp_path]) as service:
        confirm = service.plan_folder(str(folder), progress=no_progress).confirm
        with pytest.raises(InputError, match="1 passages"):
            service.index_folder(str(folder)).result(10)
        (folder / "a.md").write_text("Ada wrote two books\n")
        with pytest.raises(InputError, match="another plan"):
            service.index_folder(str(folder), confirm=confirm).result(10)
        confirm = service.plan_folder(str(folder), progress=no_progress).confirm
        assert service.index_folder(str(folder), confirm=confirm).result(10).ok
    with service_on(directory) as service, pytest.raises(InputError, match="without --root"):
        service.index_folder(str(folder))


def test_read_only_refuses_every_write_before_it_is_queued(directory: Path):
    with service_on(directory) as service:
        service.index(DOCUMENTS).result(10)
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    with service_on(directory, read_only=True) as service:
        for write in (
            lambda: service.index(DOCUMENTS),
            lambda: service.update("ada.md", DOCUMENTS),
            lambda: service.delete(source_ids=["ada.md"]),
            lambda: service.index_folder("."),
            lambda: service.plan_index(DOCUMENTS),
        ):
            with pytest.raises(ConfigError, match="served read-only"):
                write()
        assert found(service, "Who founded Northwind?")
        assert service.index_stats().counts.passages == 3
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


def test_read_only_makes_no_index(directory: Path):
    with service_on(directory, read_only=True) as service, pytest.raises(StoreError, match="no index"):
        service.retrieve("Who?")
    assert not directory.exists()


def test_what_a_call_may_not_ask_is_refused_before_it_is_queued(directory: Path):
    limits = Limits(text_chars=30, question_chars=20)
    with service_on(directory, limits=limits) as service:
        for call, said in (
            (lambda: service.retrieve("x" * 21), "at most 20"),
            (lambda: service.retrieve("Who?", top_k=0), "top_k"),
            (lambda: service.index([Document("x" * 31)]), "at most 30"),
            (lambda: service.index([]), "documents is empty"),
            (lambda: service.update(" ", DOCUMENTS), "source_id is empty"),
            (lambda: service.delete(), "nothing was named"),
            (lambda: service.delete(texts=["x" * 31]), "at most 30"),
        ):
            with pytest.raises(InputError, match=said):
                call()
        assert not directory.exists() or not service.index_stats().counts.passages


def test_a_failed_extraction_is_told_and_its_passage_is_kept(directory: Path):
    with service_on(directory) as service:
        report = service.index([*DOCUMENTS, Document("broken passage")]).result(10)
        assert [failed.reason for failed in report.failed] == ["the model said nothing"]
        assert service.plan_index([Document("broken passage")]).change.passages_retried == 1


def test_reads_in_many_threads_during_many_writes_all_succeed(directory: Path):
    errors: list[BaseException] = []
    stop = threading.Event()
    with service_on(directory, most_waiting=30) as service:
        service.index(DOCUMENTS).result(10)

        def read() -> None:
            try:
                while not stop.is_set():
                    assert found(service, "Who founded Northwind?")
                    service.index_stats()
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        for write in [service.index([Document(f"Tove saw glacier{n}")]) for n in range(10)]:
            write.result(30)
        stop.set()
        for reader in readers:
            reader.join(30)
    assert not errors
    assert len(held(directory)) == 13


def test_a_queue_that_is_full_says_so(directory: Path):
    model = Sayings(gate=threading.Event())
    with service_on(directory, model, most_waiting=1) as service:
        service.index(DOCUMENTS)
        until(lambda: bool(model.asked))
        service.index(DOCUMENTS)
        with pytest.raises(HippoRAGError, match="writes are waiting"):
            service.index(DOCUMENTS)


@pytest.mark.parametrize("most", [0, True, 2.0])
def test_a_queue_without_room_is_refused(directory: Path, most: int):
    with pytest.raises(ConfigError, match="most_waiting"):
        MemoryService(
            store=Store(directory),
            open_memory=FailsFirst(directory),
            confirmations=Confirmations(),
            most_waiting=most,
        )
