"""Estimated tokens: rather too many than too few."""

import pytest

from hipporag_torch.chat import Message
from hipporag_torch.llms.estimate import estimated_text_tokens, estimated_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("Oslo", 1),
        ("capital of Norway", 2 + 1 + 2),
        ("1963", 2),
        ("C++", 3),
        ('{"a": [1]}', 10 - 1),
        ("a\n    b", 4),
        ("東京", 4),
        ("São", 1 + 2 + 1),
        ("🦛", 2),
        ("\ud800", 1),
    ],
)
def test_an_estimate(text: str, tokens: int):
    assert estimated_text_tokens(text) == tokens


def test_a_prompt_has_more_than_its_texts():
    assert estimated_tokens((Message("system", "Oslo"), Message("user", "Oslo"))) == 2 + 2 * 5 + 3
