"""Prompts of like length through a model together, fewer at once when memory runs out."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from hipporag_torch.chat import ChatReply

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Waiting:
    """A prompt's number and tokens, and how many tokens its reply may have."""

    number: int
    tokens: list[int]
    room: int


def answered_in_batches(
    waiting: Sequence[Waiting],
    batch_size: int,
    answer: Callable[[Sequence[Waiting]], list[ChatReply]],
    hand: Callable[[int, ChatReply], None],
) -> int:
    """Hands over the reply of every prompt, and returns the batch size that memory sufficed for.

    answer: the replies of a batch, whose prompts have the same room; it may raise `torch.OutOfMemoryError`.
    """
    # The longest go first, so that memory runs out at once or never. The order of equals does not matter
    # to replies, but it is to be the same for the same prompts in any order.
    queue = sorted(waiting, key=lambda one: (-len(one.tokens), one.tokens, one.number))
    while queue:
        batch = [one for one in queue[:batch_size] if one.room == queue[0].room]
        replies = _unless_out_of_memory(answer, batch)
        if replies is None and len(batch) > 1:
            batch_size = len(batch) // 2
            _log.warning(
                "memory ran out with %d prompts of up to %d tokens at once; going on with %d, which "
                "llm.batch_size=%d would have done from the start",
                len(batch),
                len(batch[0].tokens),
                batch_size,
                batch_size,
            )
            continue
        for one, reply in zip(batch, replies or [_does_not_fit(batch[0])], strict=True):
            hand(one.number, reply)
        done = {one.number for one in batch}
        queue = [one for one in queue if one.number not in done]
    return batch_size


def _unless_out_of_memory(
    answer: Callable[[Sequence[Waiting]], list[ChatReply]], batch: Sequence[Waiting]
) -> list[ChatReply] | None:
    try:
        return answer(batch)
    except torch.OutOfMemoryError:
        pass
    # Only here, where the error and with it the failed batch's tensors are gone.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


def _does_not_fit(one: Waiting) -> ChatReply:
    why = (
        f"memory ran out with this prompt alone: {len(one.tokens):,} tokens and up to {one.room:,} of a "
        "reply; split the passage, lower llm.max_tokens, or spread the model with llm.device_map=auto"
    )
    return ChatReply("", "error", error=why)
