"""The records that travel between the parts. All frozen; none knows how it is computed."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hipporag_torch.chat import Usage
from hipporag_torch.errors import InputError

Role = Literal["passage", "phrase", "fact", "question_to_fact", "question_to_passage"]
"""What a text is embedded as. Embedders with instructions have one for each role."""

Route = Literal[
    "graph",
    "graph:no_facts",
    "graph:filter_kept_none",
    "graph:filter_error",
    "dense:no_facts",
    "dense:filter_kept_none",
    "dense:filter_error",
    "dense:requested",
    "dense_bm25:requested",
    "bm25:requested",
    "bm25:no_match",
    "none:empty_index",
]
"""Which way a question went, and why. Recorded for every question, counted for every run.

On `graph` facts were kept to start from. Without one, a question that names a phrase of the graph still walks
(`graph:…`), another is ranked by embeddings (`dense:…`)."""

SourceName = Literal["facts", "entities", "passages"]
"""What says where a walk starts: facts like the question, phrases that it names, passages like it."""

SourceShares = tuple[tuple[SourceName, float], ...]
"""What each source gave of a whole; they add up to it. Sources that gave nothing are left out."""

Progress = Callable[[str, int, int], None]
"""`progress(stage, done, total)`: called as work advances; the library itself draws nothing."""

ExtractionStatus = Literal["ok", "truncated", "failed"]

AnswerFlag = Literal["", "no_marker", "cut", "empty", "error", "too_long", "no_passages"]
"""What is odd about an answer. With a text: `no_marker`, nothing in the reply is marked as the answer, so it
was taken whole; `cut`, it ended at the token limit before its answer did. Without one: `empty`, the model
replied but did not answer; `error`, there was no reply; `too_long`, not one passage fits the model's context,
so it was not asked; `no_passages`, there was nothing to read."""

PassagesFrom = Literal["retrieval", "caller"]
"""Where the passages that were read come from."""

OnError = Literal["quarantine", "fail"]
"""What a failed extraction does to a change: its passage is indexed dense-only, or nothing is changed."""


@dataclass(frozen=True)
class Document:
    """What a caller hands in.

    Without a `source_id` the content id of the text becomes the source.
    `metadata` must be JSON-like, and is copied; its key `title` is what title-level evaluation looks at.
    """

    text: str
    source_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text(self.text, "a document's text")
        if self.source_id is not None:
            require_text(self.source_id, "a document's source_id")
        object.__setattr__(self, "metadata", _json_copy(self.metadata))


@dataclass(frozen=True)
class Chunk:
    """A piece of a document that becomes a passage.

    `start` and `end` are the character offsets in the document's text that it covers. `metadata` must be
    JSON-like; it is added to the document's.
    """

    text: str
    start: int
    end: int
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """One place that holds a passage: `position` is its order within that source.

    `start` and `end` are the character offsets that it covers in the document that it was cut from.
    """

    source_id: str
    position: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class Passage:
    """The unit that is embedded, extracted and retrieved; `id` is a hash of `text`."""

    id: str
    text: str
    sources: tuple[Source, ...] = ()

    @property
    def title(self) -> str:
        """The first title that a source's metadata gives it, or the empty string."""
        titles = (source.metadata.get("title") for source in self.sources)
        return next((title for title in titles if isinstance(title, str)), "")


@dataclass(frozen=True, order=True)
class Triple:
    """A (subject, predicate, object) statement, as a model wrote it or normalised."""

    subject: str
    predicate: str
    object: str

    @property
    def parts(self) -> tuple[str, ...]:
        """What it is sorted, stored and shown by."""
        return self.subject, self.predicate, self.object


@dataclass(frozen=True)
class Sentence:
    """A sentence that stands in the place of a triple. Its names are kept beside it: they become phrases."""

    text: str

    @property
    def parts(self) -> tuple[str, ...]:
        """What it is sorted, stored and shown by."""
        return (self.text,)


Fact = Triple | Sentence
"""What a passage states: an edge between two phrases, or a sentence about any number of them."""


@dataclass(frozen=True)
class Extraction:
    """What an extractor found in one passage.

    `triples` are its statements; `sentences` are those of an extractor that takes whole sentences for
    statements, each with what it names (perhaps nothing).
    `producer` says what made it: see `Extractor.producer`. `dropped` counts malformed entries by kind.
    A failed extraction has a `reason` and states nothing; its passage is indexed all the same and can be
    found by its embedding. It keeps the raw `reply`, if there was one; `permanent` says that trying
    again would fail in the same way (a text longer than the context, a refusal). `usage` is what a
    language model was asked for it.
    """

    entities: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()
    sentences: tuple[tuple[Sentence, tuple[str, ...]], ...] = ()
    status: ExtractionStatus = "ok"
    reason: str = ""
    producer: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)
    reply: str = ""
    permanent: bool = False
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class FilterDecision:
    """A fact filter's answer for one question: rows into the candidates that it was shown.

    `error` is empty unless the filter could not decide; then nothing is kept and the route says so.
    `dropped` counts choices that were not among the candidates, or were repeated, by kind; `usage` is
    what the decision cost.
    """

    kept: tuple[int, ...]
    error: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class TracedFact:
    """A fact that was considered for a question. `ends` are the phrases that it joins or names, each once.

    `score` lies in [0, 1]. Reference seeding: the cosine, min-max normalised over all facts. Blended seeding:
    its softmax weight among the facts considered, which sum to 1; those kept seed in these proportions.
    """

    fact: Fact
    score: float
    kept: bool
    ends: tuple[str, ...]


@dataclass(frozen=True)
class TracedSeed:
    """A node that the walk restarts from; `weight` is its share of the reset, which sums to 1.

    `sources` are what gave it that weight.
    """

    kind: Literal["phrase", "passage"]
    name: str
    weight: float
    sources: SourceShares


@dataclass(frozen=True)
class TracedPassage:
    """How a returned passage got its mass: `mass` = `restart` + the sum over `through`.

    `through` lists the phrases that passed mass on to it in the last step, the largest first;
    `restart` is what it kept from its own seed. `sources` says where its mass started: it adds up to `mass`.
    """

    passage_id: str
    mass: float
    restart: float
    through: tuple[tuple[str, float], ...]
    sources: SourceShares


@dataclass(frozen=True)
class TracedStep:
    """One of several retrievals for a question: the query, how it went, and the thought that followed.

    `reason` is the fact filter's error. `trace` is the step's own, if its retriever gives one.
    """

    query: str
    route: Route
    reason: str = ""
    thought: str = ""
    trace: "Trace | None" = None


@dataclass(frozen=True)
class Trace:
    """Why a question got its passages. Seeds are the phrases and the strongest passages.

    `linked` are the phrases that the question was found to name. `entities_from` says whose phrases stand for
    its entities: the question's own, or those of its facts where it names none; empty where nothing walked
    or entities play no part. Where a question was retrieved for in several `steps`, all but `passages` and
    `steps` is the first one's, and each passage is traced in the step that gave its score.
    """

    facts: tuple[TracedFact, ...] = ()
    seeds: tuple[TracedSeed, ...] = ()
    passages: tuple[TracedPassage, ...] = ()
    steps: tuple[TracedStep, ...] = ()
    linked: tuple[str, ...] = ()
    entities_from: Literal["question", "facts", ""] = ""


@dataclass(frozen=True)
class Ranking:
    """The passages found for one question, best first.

    `scores` are PageRank mass on `graph` and `graph:*` (a power mean of the sources' masses, if the seeding
    has a `start_exponent` below 1), cosine on `dense:*`, BM25 on `bm25:*`, the sum of both, standardised,
    on `dense_bm25:*`.
    `reason` is the fact filter's error on the route `dense:filter_error`, else empty; of several steps it
    also tells what went wrong in the later ones. `thoughts` are what a model thought between the steps.
    `usage` is what models were asked on the way; `dropped` counts the fact filter's unusable choices.
    """

    question: str
    passages: tuple[Passage, ...]
    scores: tuple[float, ...]
    route: Route
    trace: Trace | None = None
    reason: str = ""
    thoughts: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def passage_ids(self) -> tuple[str, ...]:
        return tuple(passage.id for passage in self.passages)


@dataclass(frozen=True)
class Answer:
    """What a reader made of a question's passages.

    `passages` are those that it read, best first, and `passages_left_out` how many more it was to read that
    its model's context does not hold; `citations` are the ids of those that `text` rests on. `score` is
    the reader's own measure of support, higher is better. `method` says how the answer came about, and
    `passages_from` whether the passages were retrieved. A language model's raw `reply` is kept, with its
    `usage`; `flag` says what is odd about it, and `reason` why, where there is more to say.
    """

    question: str
    text: str
    passages: tuple[Passage, ...]
    citations: tuple[str, ...]
    score: float
    method: str
    reply: str = ""
    usage: Usage = field(default_factory=Usage)
    flag: AnswerFlag = ""
    reason: str = ""
    passages_from: PassagesFrom = "retrieval"
    passages_left_out: int = 0

    @property
    def passage_ids(self) -> tuple[str, ...]:
        return tuple(passage.id for passage in self.passages)

    @property
    def cited(self) -> tuple[Passage, ...]:
        """The passages of `citations`, in their order, with their sources."""
        by_id = {passage.id: passage for passage in self.passages}
        return tuple(by_id[passage_id] for passage_id in self.citations)


@dataclass(frozen=True)
class Question:
    """One question of a data set. `gold_texts` are whole passages, as they stand in the corpus."""

    id: str
    text: str
    answers: tuple[str, ...] = ()
    gold_texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """A corpus with questions about it. Gold labels serve evaluation alone.

    `origin` says where it came from (a path, or a repository and its commit, and a fingerprint), for the
    record of a run; JSON-like.
    """

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    origin: Mapping[str, Any] = field(default_factory=dict)


def walked(route: Route) -> bool:
    """Whether the passages of a question on `route` are ranked by a walk over the graph."""
    return route.partition(":")[0] == "graph"


def no_progress(stage: str, done: int, total: int) -> None:
    """The progress callable that shows nothing."""


def _json_copy(metadata: Mapping[str, Any]) -> dict[str, Any]:
    try:
        copy = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"a document's metadata must be JSON-like: {error}; got {metadata!r:.120}"
        ) from error
    return copy


def require_text(value: object, what: str) -> str:
    """`value` if it is text that can be encoded and seen; else an `InputError` that names `what`."""
    text = require_unicode(value, what)
    if not text.strip():
        raise InputError(f"{what} is empty, got {text!r:.80}; leave it out or give it some text")
    return text


def require_unicode(value: object, what: str) -> str:
    """`value` if it is a string that can be encoded, perhaps empty; else an `InputError` naming `what`."""
    if not isinstance(value, str):
        raise InputError(f"{what} must be a string, got {type(value).__name__}: {value!r:.80}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{what} holds an unpaired surrogate at character {error.start}, so it is not valid Unicode: "
            f"{value[max(0, error.start - 20) : error.start + 20]!r}; decode the file with the right encoding"
        ) from error
    return value
