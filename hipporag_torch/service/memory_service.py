"""One memory in a directory as a service: reads go on while it is written to."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from hipporag_torch.errors import BackendError, ConfigError, InputError
from hipporag_torch.explanation import Explanation, explain
from hipporag_torch.folders import GLOBS, FolderReport, apply_plan, plan_folder
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.indexer import Indexer
from hipporag_torch.keepers import InMemory
from hipporag_torch.maintenance import IndexStats
from hipporag_torch.protocols import Progress
from hipporag_torch.reports import AddReport, ChangePlan, RemoveReport, UpdateReport
from hipporag_torch.retrievers.questions import check_call
from hipporag_torch.service.confirmation import Confirmations, Plan
from hipporag_torch.service.limits import Limits, Roots
from hipporag_torch.service.plans import (
    Planned,
    PlannedFolder,
    cost_of,
    extractions_of,
    folder_arguments,
    index_arguments,
    update_arguments,
)
from hipporag_torch.service.sharing import giving_way
from hipporag_torch.service.views import Opened, State, View
from hipporag_torch.service.write_queue import Result, ServiceClosed, Write, WriteQueue, WriteStopped
from hipporag_torch.store.store import Store
from hipporag_torch.types import Answer, Document, Ranking, require_text

# How long reads may miss what another process has committed.
_LOOK_SECONDS = 0.25
# Statistics look at files that a write may be deleting.
_ATTEMPTS = 5


class MemoryService:
    """Reads, and writes that wait for one another, on the memory in the directory of `store`.

    Reads may be called from any thread and are answered from the last committed generation; writes return
    at once and can be waited for, watched and cancelled. Nothing is loaded before `start`, or the first call.

    open_memory: opens it; called in the thread of the writes, again after it failed.
    """

    def __init__(
        self,
        *,
        store: Store,
        open_memory: Callable[[], Opened],
        confirmations: Confirmations | None = None,
        limits: Limits | None = None,
        roots: Roots | None = None,
        most_waiting: int = 100,
    ) -> None:
        if type(most_waiting) is not int or most_waiting < 1:
            raise ConfigError(f"serve.most_waiting must be at least 1, got {most_waiting!r}")
        self.store = store
        self.confirmations = confirmations or Confirmations()
        self.limits = limits or Limits()
        self.roots = roots or Roots(())
        self._open_memory = open_memory
        self._queue = WriteQueue(most_waiting=most_waiting)
        self._loading: Future[Opened] | None = None
        self._lock = threading.Lock()
        self._view: View | None = None
        self._looked = 0.0

    @property
    def read_only(self) -> bool:
        return self.store.read_only

    def __enter__(self) -> "MemoryService":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Begin to load models and index, if that is not done; a failure is told by the next call."""
        self._load()

    def close(self) -> None:
        """Cancel what waits, let the running write commit or be rolled back, let go of the index."""
        loading = self._loading
        # What still loads is not waited for: it has written nothing.
        self._queue.close(wait=loading is None or loading.done())
        if loading is None:
            return
        if loading.done():
            if loading.exception() is None:
                loading.result().memory.close()
            return
        with suppress(InvalidStateError):
            loading.set_exception(ServiceClosed("the service was shut down while it loaded; start it again"))

    def state(self) -> State:
        """What the service is doing now."""
        running = self._queue.running
        action = "" if running is None or running.own else running.action
        return State(self._is_loaded(), action, self._queue.num_waiting)

    # Reads.

    def retrieve(self, question: str, *, top_k: int = 5, trace: bool = False) -> tuple[View, Ranking]:
        """The best passages for a question, and the generation that they are of."""
        self.limits.check_question(question)
        check_call([question], top_k)
        view = self._current()
        return view, view.retriever.retrieve([question], top_k=top_k, trace=trace)[0]

    def rag_qa(self, question: str) -> tuple[View, Ranking, Answer]:
        """An answer, and the passages that were found for it."""
        opened = self._opened()
        view, ranking = self.retrieve(question, top_k=opened.passages_read)
        return view, ranking, opened.reader.read([ranking])[0]

    def explain(self, question: str, *, top_k: int = 5) -> tuple[View, Explanation]:
        """Why a question gets its passages."""
        view, ranking = self.retrieve(question, top_k=top_k, trace=True)
        return view, explain(view.index, ranking)

    def index_stats(self) -> IndexStats:
        """What the memory holds. An index that exists is told of even if no model can be loaded."""
        if not self._is_loaded():
            if self.store.is_made:
                with HippoRAG.open(self.store.directory, read_only=self.read_only) as memory:
                    return memory.stats()
            self._opened()
        self._current()
        memory = self._opened().memory
        for _ in range(_ATTEMPTS):
            # A commit in between would give the counts of one generation and the files of another.
            with suppress(FileNotFoundError):
                before = memory.index
                stats = memory.stats()
                if memory.index is before:
                    return stats
        raise BackendError("the index changes too fast to be counted now; call index_stats again")

    # Plans: what a write would do. They ask no model and wait for no write.

    def plan_index(self, documents: Sequence[Document]) -> Planned:
        """What `index` would do."""
        self._require_writable("index")
        self.limits.check_documents(documents)
        return self._planned(lambda memory: memory.plan_add(documents), index_arguments(documents))

    def plan_update(self, source_id: str, documents: Sequence[Document]) -> Planned:
        """What `update` would do."""
        self._require_writable("update")
        self._check_update(source_id, documents)
        return self._planned(
            lambda memory: memory.plan_update(source_id, documents), update_arguments(source_id, documents)
        )

    def plan_delete(
        self, *, source_ids: Sequence[str] = (), texts: Sequence[str] = ()
    ) -> tuple[View, RemoveReport]:
        """The report that `delete` would give."""
        self._require_writable("delete")
        self._check_delete(source_ids, texts)
        view = self._current()
        return view, self._planning(view).plan_remove(source_ids=source_ids, texts=texts)

    def plan_folder(
        self, path: str, *, globs: Sequence[str] = GLOBS, prune: bool = False, progress: Progress
    ) -> PlannedFolder:
        """What `index_folder` would do."""
        self._require_writable("index_folder")
        folder = self.roots.folder(path)
        opened, view = self._opened(), self._current()
        plan = plan_folder(self._planning(view), folder, globs=globs, prune=prune, progress=progress)
        extractions = plan.passages_new + plan.passages_retried
        confirm = self._confirm(Plan.of(folder_arguments(plan), view.generation), extractions)
        return PlannedFolder(plan, opened.extractor.producer, view.generation, confirm)

    # Writes.

    def index(self, documents: Sequence[Document], *, confirm: str | None = None) -> Write[AddReport]:
        """Add documents. confirm: the token of a dry run, for more new passages than go without one."""
        self._require_writable("index")
        self.limits.check_documents(documents)
        arguments = index_arguments(documents)

        def work(memory: HippoRAG, progress: Progress) -> AddReport:
            self._require_confirmed(arguments, confirm, memory.plan_add(documents))
            return memory.add(documents, progress)

        return self._write("index", work)

    def update(
        self, source_id: str, documents: Sequence[Document], *, confirm: str | None = None
    ) -> Write[UpdateReport]:
        """Replace what a source holds, in one commit. confirm: as in `index`."""
        self._require_writable("update")
        self._check_update(source_id, documents)
        arguments = update_arguments(source_id, documents)

        def work(memory: HippoRAG, progress: Progress) -> UpdateReport:
            self._require_confirmed(arguments, confirm, memory.plan_update(source_id, documents))
            return memory.update(source_id, documents, progress)

        return self._write("update", work)

    def delete(self, *, source_ids: Sequence[str] = (), texts: Sequence[str] = ()) -> Write[RemoveReport]:
        """Take out what is named."""
        self._require_writable("delete")
        self._check_delete(source_ids, texts)
        return self._write(
            "delete",
            lambda memory, progress: memory.remove(source_ids=source_ids, texts=texts, progress=progress),
        )

    def index_folder(
        self, path: str, *, globs: Sequence[str] = GLOBS, prune: bool = False, confirm: str | None = None
    ) -> Write[FolderReport]:
        """Bring the memory in step with a folder below the roots, a commit for each file."""
        self._require_writable("index_folder")
        folder = self.roots.folder(path)

        def work(memory: HippoRAG, progress: Progress) -> FolderReport:
            plan = plan_folder(memory, folder, globs=globs, prune=prune, progress=progress)
            self.confirmations.require(
                confirm,
                Plan.of(folder_arguments(plan), self._renewed(memory).generation),
                extractions=plan.passages_new + plan.passages_retried,
                cost=cost_of(plan.extractor_calls),
                action="index_folder",
            )
            return apply_plan(memory, plan, progress)

        return self._write("index_folder", work)

    # Within.

    def _load(self) -> Future[Opened]:
        with self._lock:
            failed = self._loading is not None and self._loading.done() and self._loading.exception()
            if self._loading is None or failed:
                self._loading = loading = Future()
                try:
                    self._queue.submit("load", lambda _: self._fill(loading), own=True)
                except ServiceClosed as error:
                    loading.set_exception(error)
            return self._loading

    def _fill(self, loading: "Future[Opened]") -> None:
        try:
            with giving_way():
                opened = self._open_memory()
                self._renewed(opened.memory)
        except BaseException as error:  # noqa: BLE001  it is raised in the calls that wait for it
            with suppress(InvalidStateError):
                loading.set_exception(error)
            return
        try:
            loading.set_result(opened)
        except InvalidStateError:
            # The service was closed meanwhile.
            opened.memory.close()

    def _is_loaded(self) -> bool:
        loading = self._loading
        return loading is not None and loading.done() and loading.exception() is None

    def _opened(self) -> Opened:
        return self._load().result()

    def _renewed(self, memory: HippoRAG) -> View:
        """The view of the last committed generation. In the thread of the writes only."""
        while True:
            generation = self.store.generation(memory.embedder.identity)
            if not memory.refresh():
                break
        if self._view is None or self._view.index is not memory.index:
            self._view = View(generation, memory.index, memory.retriever)
        self._looked = time.monotonic()
        return self._view

    def _current(self) -> View:
        """The view to read from. While a write of this service runs, nobody else can commit."""
        memory = self._opened().memory
        with self._lock:
            looks = time.monotonic() - self._looked > _LOOK_SECONDS and self._queue.is_idle
            if looks:
                self._looked = time.monotonic()
        if looks:
            look = self._queue.submit("refresh", lambda _: self._renewed(memory), own=True)
            with suppress(WriteStopped):
                return look.result()
        assert self._view is not None
        return self._view

    def _write(self, action: str, work: Callable[[HippoRAG, Progress], Result]) -> Write[Result]:
        # It stands before the write in the queue. Loading again from within would wait for itself.
        loading = self._load()

        def run(progress: Progress) -> Result:
            memory = loading.result().memory

            def advance(stage: str, done: int, total: int) -> None:
                progress(stage, done, total)
                # A sync commits file by file, and each is to be found at once.
                if self._view is None or self._view.index is not memory.index:
                    self._renewed(memory)

            with giving_way():
                self._renewed(memory)
                try:
                    return work(memory, advance)
                finally:
                    # Also where it failed: a sync has committed what went before.
                    self._renewed(memory)

        return self._queue.submit(action, run)

    def _planning(self, view: View) -> HippoRAG:
        """A memory over the index of `view`, to plan with."""
        opened = self._opened()
        indexer = Indexer(
            embedder=opened.memory.embedder,
            extractor=opened.extractor,
            chunker=opened.chunker,
            text=view.index.text,
            graph=view.index.graph_options,
        )
        return HippoRAG(indexer=indexer, keeper=InMemory(view.index))

    def _planned(self, plan_of: Callable[[HippoRAG], ChangePlan], arguments: list[Any]) -> Planned:
        view = self._current()
        change = plan_of(self._planning(view))
        plan = Plan.of(arguments, view.generation)
        confirm = self._confirm(plan, extractions_of(change))
        return Planned(change, self._opened().extractor.producer, view.generation, confirm)

    def _confirm(self, plan: Plan, extractions: int) -> str | None:
        return self.confirmations.hand_out(plan) if self.confirmations.needed(extractions) else None

    def _require_confirmed(self, arguments: list[Any], confirm: str | None, change: ChangePlan) -> None:
        assert self._view is not None
        self.confirmations.require(
            confirm,
            Plan.of(arguments, self._view.generation),
            extractions=extractions_of(change),
            cost=cost_of(change.extractor_calls),
            action=arguments[0],
        )

    def _require_writable(self, action: str) -> None:
        if self.read_only:
            raise ConfigError(
                f"the memory is served read-only, so {action} cannot change it; start another server without "
                "--read-only"
            )

    def _check_update(self, source_id: str, documents: Sequence[Document]) -> None:
        require_text(source_id, "source_id")
        self.limits.check_names("source_id", [source_id])
        self.limits.check_documents(documents)

    def _check_delete(self, source_ids: Sequence[str], texts: Sequence[str]) -> None:
        if not source_ids and not texts:
            raise InputError("nothing was named; give source_ids, texts, or both")
        for name, values in (("source_ids", source_ids), ("texts", texts)):
            self.limits.check_names(name, values)
