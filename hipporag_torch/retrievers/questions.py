"""What every retriever does with its questions first, and with its scores last."""

from collections.abc import Iterator, Sequence

from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.embedders.check import embedded
from hipporag_torch.errors import CompatibilityError, ConfigError, InputError
from hipporag_torch.index import Index
from hipporag_torch.ops.topk import TopK
from hipporag_torch.protocols import Embedder, EmbedderIdentity
from hipporag_torch.types import Ranking, Role, Route, Trace, require_text


def check_call(questions: Sequence[str], top_k: int) -> None:
    """Raise `InputError` unless there is a list of questions that can be asked and `top_k` is at least 1."""
    if isinstance(questions, str):
        raise InputError(f"questions must be a list of strings, got one string: [{questions!r:.80}]")
    for number, question in enumerate(questions):
        require_text(question, f"question {number}")
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
        raise InputError(f"top_k must be a whole number of at least 1, got {top_k!r}")


def check_batch_size(batch_size: int) -> None:
    """Raise `ConfigError` unless questions can be taken `batch_size` at a time."""
    if batch_size < 1:
        raise ConfigError(f"retriever.batch_size must be at least 1, got {batch_size}")


def check_embedder(index: Index, embedder: Embedder) -> None:
    """Raise `CompatibilityError` unless `embedder` made the vectors of `index` and can be searched with."""
    if index.embedder != embedder.identity:
        raise CompatibilityError(
            f"the index was built with the embedder {index.embedder}, the questions would be embedded with "
            f"{embedder.identity}; use the first, or index the passages again with the second"
        )
    check_vectors(embedder.identity)


def check_vectors(embedder: EmbedderIdentity) -> None:
    """Raise `CompatibilityError` unless there are vectors to compare."""
    if embedder.dim == 0:
        raise CompatibilityError(
            "the index has no vectors (embedder=none); choose an embedder, or retriever=bm25"
        )


def embed_questions(
    embedder: Embedder, questions: Sequence[str], roles: Sequence[Role]
) -> list[Float32[Tensor, "queries dim"]]:
    """The questions' vectors for each role; roles with the same instruction are embedded once."""
    by_instruction: dict[str, Tensor] = {}
    for role in roles:
        instruction = embedder.instruction(role)
        if instruction not in by_instruction:
            by_instruction[instruction] = embedded(embedder, questions, role)
    return [by_instruction[embedder.instruction(role)] for role in roles]


def question_blocks(
    index: Index, embedder: Embedder, questions: Sequence[str], roles: Sequence[Role], batch_size: int
) -> Iterator[tuple[Sequence[str], list[Float32[Tensor, "queries dim"]]]]:
    """`batch_size` questions at a time, with their vectors for each role, on the index's device."""
    if not questions:
        return
    device = index.passage_emb.device
    vectors = [emb.to(device) for emb in embed_questions(embedder, questions, roles)]
    for start in range(0, len(questions), batch_size):
        block = slice(start, start + batch_size)
        yield questions[block], [emb[block] for emb in vectors]


def rankings_of(
    index: Index,
    questions: Sequence[str],
    best: TopK,
    routes: Sequence[Route],
    traces: Sequence[Trace | None] | None = None,
) -> list[Ranking]:
    """One record per question from rows of `index.passages` and their scores."""
    return [
        Ranking(
            question=question,
            passages=tuple(index.passages[i] for i in idx),
            scores=tuple(scores),
            route=route,
            trace=trace,
        )
        for question, idx, scores, route, trace in zip(
            questions,
            best.idx.tolist(),
            best.scores.tolist(),
            routes,
            traces or [None] * len(questions),
            strict=True,
        )
    ]


def nothing_found(questions: Sequence[str], route: Route) -> list[Ranking]:
    return [Ranking(question, (), (), route) for question in questions]
