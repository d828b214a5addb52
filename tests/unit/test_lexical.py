"""Texts as tokens, and tokens as numbers."""

import os
import subprocess
import sys

import pytest

from hipporag_torch.lexical import lexical_tokens, linking_tokens, token_rows


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The Bank of England", ["the", "bank", "of", "england"]),
        ("  C++, naïve\u00a0CAFÉ!  ", ["c", "naïve", "café"]),
        ("Straße 12b", ["strasse", "12b"]),
        ("北京大学", ["北", "京", "大", "学"]),
        ("iPhone在中国", ["iphone", "在", "中", "国"]),
        ("東京タワー 2", ["東", "京", "タ", "ワ", "ー", "2"]),
        ("กรุง", ["ก", "ร", "ุ", "ง"]),
        ("서울 타워", ["서울", "타워"]),
        ("Москва", ["москва"]),
        ("القاهرة", ["القاهرة"]),
        ("", []),
        ("?! \u200b", []),
    ],
)
def test_all_words_in_order_and_characters_where_there_are_no_spaces(text: str, tokens: list[str]) -> None:
    assert linking_tokens(text) == tokens


@pytest.mark.parametrize("text", ["The", "who", "WHO?", "may", "Did", "where", "(was)", "北", "は", "ก"])
def test_a_single_common_word_or_character_names_nothing(text: str) -> None:
    assert linking_tokens(text) == []


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The Who", ["the", "who"]),
        ("May 1963", ["may", "1963"]),
        ("Oslo", ["oslo"]),
        ("ñ", ["ñ"]),
        ("7", ["7"]),
    ],
)
def test_common_words_stay_beside_others_and_other_single_words_stay(text: str, tokens: list[str]) -> None:
    assert linking_tokens(text) == tokens


def test_equal_tokens_have_equal_numbers_and_others_do_not() -> None:
    rows = token_rows(["Oslo and Bergen", "", "bergen, OSLO", "the of"], lexical_tokens)
    assert rows.row_ptr.tolist() == [0, 2, 2, 4, 4]
    oslo, bergen, bergen_again, oslo_again = rows.values.tolist()
    assert (oslo, bergen) == (oslo_again, bergen_again)
    assert oslo != bergen


def test_numbers_are_the_same_in_every_process() -> None:
    """And in every version: they stand on the disk."""
    code = (
        "from hipporag_torch.lexical import linking_tokens, token_rows\n"
        "print(token_rows(['Oslo 北京'], linking_tokens).values.tolist())"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    here = token_rows(["Oslo 北京"], linking_tokens).values.tolist()
    assert said.strip() == str(here)
    assert here[0] == 8079082606332175587
