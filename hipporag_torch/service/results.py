"""What the tools give back. The descriptions stand in the schemas that a client sees."""

from typing import Any

from pydantic import BaseModel, Field


class SourceResult(BaseModel):
    """A place that holds a passage."""

    source_id: str = Field(description="The source, such as a file's path; delete and update take it")
    position: int = Field(description="Its order within the source, from 0")
    start: int = Field(description="Where it begins in the document it was cut from, in characters")
    end: int = Field(description="Where it ends there")
    metadata: dict[str, Any] = Field(description="What came with the document, such as path and heading")


class PassageResult(BaseModel):
    """A passage that was found."""

    rank: int = Field(description="1 is the best")
    score: float = Field(description="Comparable within one result only; higher is better")
    passage_id: str = Field(description="A hash of its text")
    title: str = Field(description="The title that a source gives it, or empty")
    text: str = Field(description="The passage itself")
    sources: list[SourceResult] = Field(description="All places that hold it: cite these")


class UsageResult(BaseModel):
    """What language models were asked, or would be."""

    calls: int = Field(description="Calls that are paid for")
    prompt_tokens: int = Field(description="Tokens of their prompts")
    completion_tokens: int = Field(description="Tokens of their replies; in a plan, the most they may have")
    cached_calls: int = Field(description="Calls that a cache answered, which cost nothing")


class RetrieveResult(BaseModel):
    """The passages for a question, best first."""

    question: str = Field(description="What was asked")
    generation: int = Field(description="The committed state of the index that was searched")
    route: str = Field(description="Which way the question went: graph, dense, bm25, and why")
    reason: str = Field(description="What went wrong on the way, or empty")
    passages: list[PassageResult] = Field(description="The passages, best first")
    usage: UsageResult = Field(description="What language models were asked for it")


class AnswerResult(BaseModel):
    """An answer, and what it rests on."""

    question: str = Field(description="What was asked")
    answer: str = Field(description="The answer, or empty; then flag and reason say why")
    method: str = Field(description="How it came about: by a language model, or as the best sentence")
    flag: str = Field(description="What is odd about it, or empty")
    reason: str = Field(description="Why, or empty")
    score: float = Field(description="The reader's own measure of support, higher is better")
    citations: list[str] = Field(description="The passage_ids that the answer rests on")
    passages: list[PassageResult] = Field(description="The passages that were read, best first")
    passages_left_out: int = Field(description="How many more did not fit the model's context")
    route: str = Field(description="Which way the question went")
    generation: int = Field(description="The committed state of the index that was searched")
    usage: UsageResult = Field(description="What language models were asked, retrieval included")


class PlanResult(BaseModel):
    """What a write would do. Nothing was asked, embedded or written."""

    passages_new: int = Field(description="Passages that would be extracted and embedded")
    passages_known: int = Field(description="Passages that the index has already; they cost nothing")
    passages_retried: int = Field(description="Passages that failed before and would be extracted again")
    passages_removed: int = Field(description="Passages that no source would hold any more")
    usage: UsageResult = Field(description="What language models would be asked for extraction, at most")
    extractor: str = Field(description="What would extract them")
    generation: int = Field(description="The committed state of the index that this is about")
    confirm: str | None = Field(
        description="Pass this on as confirm to do it: good once, for this plan. null: none is needed"
    )


class FailedResult(BaseModel):
    """A passage that could not be extracted: only its vector finds it."""

    passage_id: str = Field(description="A hash of its text")
    source_ids: list[str] = Field(description="The sources that hold it")
    reason: str = Field(description="Why it failed")
    permanent: bool = Field(description="Whether trying again would fail in the same way")


class SourceCounts(BaseModel):
    """What one source brought."""

    source_id: str = Field(description="The source")
    passages_added: int = Field(description="New passages")
    passages_known: int = Field(description="Passages that were there already")
    failed: int = Field(description="Passages that could not be extracted")


class AddedResult(BaseModel):
    """What was added, in one commit."""

    documents: int = Field(description="Documents that were handed in")
    passages_added: int = Field(description="Passages that were new")
    passages_known: int = Field(description="Passages that were there already")
    phrases_added: int = Field(description="Names and phrases new to the graph")
    facts_added: int = Field(description="Facts new to the graph")
    failed: list[FailedResult] = Field(description="Passages that could not be extracted; index them again")
    sources: list[SourceCounts] = Field(description="The same by source")
    usage: UsageResult = Field(description="What language models were asked")
    passages_left: int = Field(description="Passages that a spent budget left out; index them again")
    stopped: str = Field(description="Why it stopped early, or empty")


class RemovedResult(BaseModel):
    """What was removed, or would be."""

    passages_removed: list[str] = Field(description="passage_ids that no source holds any more")
    passages_kept: list[str] = Field(description="passage_ids that other sources still hold")
    phrases_removed: int = Field(description="Names and phrases that went with them")
    facts_removed: int = Field(description="Facts that went with them")
    not_found: list[str] = Field(description="What was named and is not in the index")


class IndexResult(BaseModel):
    """What index did, or with dry_run would do."""

    plan: PlanResult | None = Field(description="With dry_run, what it would do; else null")
    added: AddedResult | None = Field(description="What was done; null with dry_run")


class UpdateResult(BaseModel):
    """What update did, or with dry_run would do."""

    source_id: str = Field(description="The source that is replaced")
    plan: PlanResult | None = Field(description="With dry_run, what it would do; else null")
    added: AddedResult | None = Field(description="What its documents brought; null with dry_run")
    removed: RemovedResult | None = Field(description="What it holds no more; null with dry_run")


class DeleteResult(BaseModel):
    """What delete did, or with preview would do."""

    preview: bool = Field(description="Whether this only says what would go")
    removed: RemovedResult = Field(description="What went, or would go")


class FileResult(BaseModel):
    """One file of a folder."""

    path: str = Field(description="Relative to the folder; that of a skipped folder ends with /")
    source_id: str = Field(description="Its source in the memory; delete takes it")
    status: str = Field(
        description="added, unchanged, replaced, retried, removed, missing, skipped, failed or left; in a "
        "plan, what would become of it"
    )
    reason: str = Field(description="Why it is skipped, removed or failed, or empty")
    passages: int = Field(description="Passages that it gives")
    passages_new: int = Field(description="Of these, new to the memory")
    passages_removed: int = Field(description="Passages that its source held before and not any more")
    passages_failed: int = Field(description="Of its passages, those that could not be extracted")


class FolderResult(BaseModel):
    """What index_folder did, or with dry_run would do."""

    root: str = Field(description="The folder")
    root_id: str = Field(description="What the source_ids of its files begin with")
    counts: dict[str, int] = Field(description="How many files there are of each status")
    files: list[FileResult] = Field(description="Every file that counts, by path")
    unmatched: int = Field(description="Files that no glob names; they are not listed")
    plan: PlanResult | None = Field(description="With dry_run, what it would cost; else null")
    usage: UsageResult = Field(description="What language models were asked")
    stopped: str = Field(description="Why it ended early, or empty; the same call goes on from there")


class StatsResult(BaseModel):
    """What the memory holds, was built with, has failed at and is doing."""

    path: str = Field(description="The directory of the index")
    generation: int = Field(description="The last committed state")
    read_only: bool = Field(description="Whether this server cannot change it")
    passages: int = Field(description="Passages")
    sources: int = Field(description="Sources, such as files")
    phrases: int = Field(description="Names and phrases of the graph")
    facts: int = Field(description="Distinct facts")
    synonyms: int = Field(description="Pairs of phrases that mean much the same")
    edges: int = Field(description="Edges of the graph")
    without_facts: int = Field(description="Passages that state nothing; their vectors find them")
    failed: list[FailedResult] = Field(description="Passages that could not be extracted")
    extractors: dict[str, int] = Field(description="Passages by what extracted them")
    embedder: str = Field(description="What made the vectors")
    megabytes: float = Field(description="Size of the directory")
    interrupted: str = Field(description="What a writer that was killed had in hand, or empty")
    loaded: bool = Field(description="Whether the models are loaded")
    writing: str = Field(description="The write that runs now, or empty; reads are of the state before it")
    writes_waiting: int = Field(description="Writes that wait for it")
    confirm_above: int | None = Field(
        description="Extractions that a call may make without a confirm; 0: none, null: any number"
    )


class FactResult(BaseModel):
    """A fact that was considered."""

    parts: list[str] = Field(description="Subject, predicate and object; or one sentence")
    score: float = Field(description="How much it is like the question, 0 to 1")
    kept: bool = Field(description="Whether the walk started from it")


class ShareResult(BaseModel):
    """A part of a passage's score that came through a phrase."""

    phrase: str = Field(description="The phrase")
    share: float = Field(description="What it passed on")


class ExplainedPassageResult(PassageResult):
    """A passage, and what brought its score."""

    restart: float = Field(description="The part that it had from its own likeness to the question")
    through: list[ShareResult] = Field(description="The phrases that brought most of the rest")
    started_by: dict[str, float] = Field(description="Where its score started: facts, entities, passages")


class NodeResult(BaseModel):
    """A node of the question's sub-graph."""

    id: str = Field(description="Edges name it by this")
    kind: str = Field(description="phrase or passage")
    label: str = Field(description="The phrase, or the passage's title or first line")
    seed: float = Field(description="The share of the walk that starts here")


class EdgeResult(BaseModel):
    """An edge of it."""

    source: str = Field(description="A node")
    target: str = Field(description="Another")
    weight: float = Field(description="Its weight in the graph")
    kinds: list[str] = Field(description="fact, synonym, membership or mention")
    predicates: list[str] = Field(description="What the facts say between the two")


class ExplainResult(BaseModel):
    """Why a question gets its passages."""

    question: str = Field(description="What was asked")
    generation: int = Field(description="The committed state of the index that was searched")
    route: str = Field(description="Which way it went")
    why: str = Field(description="The same in words")
    linked: list[str] = Field(description="The phrases that the question names")
    facts: list[FactResult] = Field(description="The facts that were considered, best first")
    passages: list[ExplainedPassageResult] = Field(description="The passages, best first")
    nodes: list[NodeResult] = Field(description="The sub-graph's nodes")
    edges: list[EdgeResult] = Field(description="Its edges")
