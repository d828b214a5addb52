"""The tools: typed arguments, a call of the service, a typed result."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from pydantic import BaseModel, ConfigDict, Field

from hipporag_torch.folders import GLOBS
from hipporag_torch.protocols import no_progress
from hipporag_torch.service import conversion, results
from hipporag_torch.service.memory_service import MemoryService
from hipporag_torch.service.write_queue import Advance, Result, Write
from hipporag_torch.types import Document

_POLL_SECONDS = 0.02


class DocumentInput(BaseModel):
    """A document to index."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="The text: best one self-contained passage of 100 to 400 words")
    source_id: str | None = Field(
        default=None, description="Where it comes from, such as a path or URL; update and delete name it"
    )
    metadata: dict[str, Any] = Field(
        default_factory=dict, description="JSON that comes back with its passages; the key title is its title"
    )


Question = Annotated[str, Field(description="A question in natural language")]
Documents = Annotated[
    list[DocumentInput | str],
    Field(description="Documents, or plain texts. Those of one source share a source_id, in their order"),
]
DryRun = Annotated[
    bool,
    Field(description="Only say what it would do and cost. Nothing is written, no model is asked"),
]
Confirm = Annotated[
    str | None,
    Field(description="The confirm of a dry run with the same arguments, where it gave one"),
]


class MemoryTools:
    """The functions that become tools; their docstrings are the descriptions that a client sees.

    max_reads: reads that are worked on at once; more wait.
    """

    def __init__(self, service: MemoryService, *, max_reads: int) -> None:
        self._service = service
        self._limiter = anyio.CapacityLimiter(max_reads)

    async def retrieve(
        self,
        query: Question,
        top_k: Annotated[int, Field(ge=1, le=100, description="Passages to give, 1 to 100")] = 5,
    ) -> results.RetrieveResult:
        """Find the passages that answer a question, best first, with their sources. Works while the memory is
        written to: it then answers from the state before."""
        view, ranking = await self._read(partial(self._service.retrieve, query, top_k=top_k))
        return conversion.retrieve_result(view.generation, ranking)

    async def rag_qa(self, question: Question) -> results.AnswerResult:
        """Answer a question from the memory, and give the passages that the answer rests on."""
        view, ranking, answer = await self._read(partial(self._service.rag_qa, question))
        return conversion.answer_result(view.generation, ranking, answer)

    async def explain(
        self,
        query: Question,
        top_k: Annotated[int, Field(ge=1, le=100, description="Passages to explain, 1 to 100")] = 5,
    ) -> results.ExplainResult:
        """Say why a question gets its passages: the facts it is like, the phrases it names, the way from
        these to each passage."""
        view, explanation = await self._read(partial(self._service.explain, query, top_k=top_k))
        return conversion.explain_result(view.generation, explanation)

    async def index_stats(self) -> results.StatsResult:
        """Say what the memory holds, what it was built with, what failed, and whether a write is running."""
        stats = await self._read(self._service.index_stats)
        return conversion.stats_result(
            stats,
            self._service.state(),
            read_only=self._service.read_only,
            confirm_above=self._service.confirmations.above,
        )

    async def index(
        self, documents: Documents, ctx: Context, dry_run: DryRun = False, confirm: Confirm = None
    ) -> results.IndexResult:
        """Add documents: all of them in one commit, or on an error none. What the memory holds already costs
        nothing. To replace what a source holds, use update. Many new passages need a dry run's confirm."""
        wanted = self._documents(documents)
        if dry_run:
            planned = await self._read(partial(self._service.plan_index, wanted))
            return results.IndexResult(plan=conversion.plan_result(planned), added=None)
        write = await _submitted(partial(self._service.index, wanted, confirm=confirm))
        return results.IndexResult(plan=None, added=conversion.added_result(await _finished(write, ctx)))

    async def update(
        self,
        source_id: Annotated[str, Field(description="The source whose passages are replaced")],
        documents: Documents,
        ctx: Context,
        dry_run: DryRun = False,
        confirm: Confirm = None,
    ) -> results.UpdateResult:
        """Replace all that a source holds by these documents, in one commit: it is never without its text.
        Passages that stay the same are not paid for again. Many new ones need the confirm of a dry run."""
        wanted = self._documents(documents)
        if dry_run:
            planned = await self._read(partial(self._service.plan_update, source_id, wanted))
            plan = conversion.plan_result(planned)
            return results.UpdateResult(source_id=source_id, plan=plan, added=None, removed=None)
        write = await _submitted(partial(self._service.update, source_id, wanted, confirm=confirm))
        report = await _finished(write, ctx)
        return results.UpdateResult(
            source_id=source_id,
            plan=None,
            added=conversion.added_result(report.added),
            removed=conversion.removed_result(report.removed),
        )

    async def delete(
        self,
        ctx: Context,
        source_ids: Annotated[
            list[str] | None, Field(description="Sources to forget; passages that others hold too stay")
        ] = None,
        texts: Annotated[
            list[str] | None, Field(description="Whole passages to forget, whatever sources hold them")
        ] = None,
        preview: Annotated[bool, Field(description="Only say what would go")] = False,
    ) -> results.DeleteResult:
        """Forget sources or passages, in one commit. Ask the user first, unless they named what is to go."""
        named = {"source_ids": source_ids or [], "texts": texts or []}
        if preview:
            _, report = await self._read(partial(self._service.plan_delete, **named))
        else:
            report = await _finished(await _submitted(partial(self._service.delete, **named)), ctx)
        return results.DeleteResult(preview=preview, removed=conversion.removed_result(report))

    async def index_folder(
        self,
        path: Annotated[str, Field(description="The folder, below one that the server may read")],
        ctx: Context,
        glob: Annotated[
            str | list[str] | None,
            Field(description=f"Names of files, or several. null: {', '.join(GLOBS)}"),
        ] = None,
        prune: Annotated[bool, Field(description="Also forget files that are not there any more")] = False,
        dry_run: DryRun = False,
        confirm: Confirm = None,
    ) -> results.FolderResult:
        """Bring the memory in step with a folder of text files: new ones are added, changed ones replaced,
        each in one commit; unchanged ones cost nothing. Stopped, the same call goes on. Many new passages
        need a dry run's confirm."""
        globs = GLOBS if glob is None else (glob,) if isinstance(glob, str) else tuple(glob)
        options: dict[str, Any] = {"globs": globs, "prune": prune}
        if dry_run:
            planned = await self._read(
                partial(self._service.plan_folder, path, progress=no_progress, **options)
            )
            return conversion.planned_folder_result(planned)
        write = await _submitted(partial(self._service.index_folder, path, confirm=confirm, **options))
        return conversion.folder_result(await _finished(write, ctx))

    def _documents(self, documents: Sequence[DocumentInput | str]) -> list[Document]:
        made: list[Document] = []
        for number, given in enumerate(documents):
            if isinstance(given, str):
                made.append(Document(given))
            else:
                # Before it is copied: what nests without end cannot be.
                self._service.limits.check_metadata(given.metadata, f"document {number}")
                made.append(Document(given.text, given.source_id, given.metadata))
        return made

    async def _read(self, read: Callable[[], Result]) -> Result:
        """What `read` gives, in a thread. A client that goes away leaves it to end by itself."""
        return await anyio.to_thread.run_sync(read, abandon_on_cancel=True, limiter=self._limiter)


async def _submitted(submit: Callable[[], Write[Result]]) -> Write[Result]:
    """The write that `submit` queues. A cancelled call waits for it: who else would cancel it?"""
    return await anyio.to_thread.run_sync(submit)


async def _finished(write: Write[Result], ctx: Context) -> Result:
    """What a write gives once it is done; its progress goes to the client. Cancelled with the call."""
    told = Advance()
    try:
        while not write.is_done:
            await anyio.sleep(_POLL_SECONDS)
            advance = write.advance
            if advance.done > told.done:
                told = advance
                message = f"{advance.stage} {advance.stage_done}/{advance.stage_total}"
                await ctx.report_progress(advance.done, advance.total, message)
    finally:
        # Here by a cancelled call it is dropped or stopped; where it is done this does nothing.
        write.cancel()
    return write.result()
