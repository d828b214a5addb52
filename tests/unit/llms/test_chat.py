"""The records that travel between the parts and a chat model."""

import pytest

from hipporag_torch.chat import ChatReply, Usage


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("plain", "plain"),
        ("東京 🌲 é", "東京 🌲 é"),
        ("half \ud83d", "half \ufffd"),
        ("\udc00 and \ud83c\udf32", "\ufffd and 🌲"),
    ],
)
def test_a_reply_never_holds_half_of_a_surrogate_pair(said: str, kept: str) -> None:
    assert ChatReply(said).text == kept


def test_usage_adds_up_and_tells_what_came_since() -> None:
    first = Usage(calls=1, prompt_tokens=10, cached_calls=2)
    both = first + Usage(calls=3, completion_tokens=4)
    assert both == Usage(calls=4, prompt_tokens=10, completion_tokens=4, cached_calls=2)
    assert both - first == Usage(calls=3, completion_tokens=4)
