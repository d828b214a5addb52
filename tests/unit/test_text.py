import hashlib

import pytest

from hipporag_torch.errors import ConfigError
from hipporag_torch.text import TextOptions, answer_key, reference_key, unicode_key
from hipporag_torch.types import Triple

REFERENCE = TextOptions(normalisation="reference", fact_template="repr", content_id="md5")
# Soft hyphen, zero-width space, word joiner, byte order mark, right-to-left mark, tag space.
INVISIBLE = (
    *("\u00ad", "\u200b", "\u2060", "\ufeff", "\u200f", "\U000e0020"),
    *("\ufe0f", "\u034f", "\u3164", "\u2800", "\u180b", "\U000e0100", "\x00"),
)


class TestUnicodeKey:
    @pytest.mark.parametrize(
        "names",
        [
            ("C", "C++", "C#"),
            ("北京", "上海", "中国"),
            ("القاهرة", "بغداد"),
            ("Москва", "Минск"),
            ("กรุงเทพ", "เชียงใหม่"),
            ("東京", "トウキョウ", "とうきょう"),
            ("São Tomé", "Sao Tome"),
            ("1963", "1964"),
            ("$5", "€5", "5%"),
            ("-", "+"),
        ],
    )
    def test_different_names_keep_different_keys(self, names: tuple[str, ...]):
        keys = [unicode_key(name) for name in names]
        assert len(set(keys)) == len(names)
        assert "" not in keys

    @pytest.mark.parametrize(
        ("spellings", "key"),
        [
            (("Electrons", "electrons", " electrons ", "ELECTRONS\n"), "electrons"),
            (("new  york", "New\tYork", "new\u00a0york", "NEW\u3000YORK", "new\u2028york"), "new york"),
            (("Ｃ＋＋", "c++", "Ｃ++"), "c++"),
            (("ＡＢＣ１２３", "abc123"), "abc123"),
            (("ﾄｳｷｮｳ", "トウキョウ"), "トウキョウ"),
            (("Straße", "STRASSE"), "strasse"),
            (("ΟΔΟΣ", "οδος", "οδοσ"), "οδοσ"),
            (("São", "Sa\u0303o"), "são"),
            (("ﬁn", "fin"), "fin"),
        ],
    )
    def test_spellings_of_one_name_share_a_key(self, spellings: tuple[str, ...], key: str):
        assert {unicode_key(spelling) for spelling in spellings} == {key}

    @pytest.mark.parametrize("invisible", INVISIBLE, ids=ascii)
    def test_invisible_characters_vanish(self, invisible: str):
        assert unicode_key(f"{invisible}Nu{invisible}clear {invisible} war{invisible}") == "nuclear war"

    def test_characters_compose_across_one_that_vanishes(self):
        assert unicode_key("Sa\u200b\u0303o") == unicode_key("São")

    def test_joiners_count_inside_a_word_and_not_around_it(self):
        inside = "می\u200cخواهم"
        assert unicode_key(f"\u200d {inside} \u200c") == inside
        assert unicode_key(inside) != unicode_key(inside.replace("\u200c", ""))

    @pytest.mark.parametrize(
        "text", ["", "  \t\n", "\u3000", "\u200c\u200d", *INVISIBLE, "".join(INVISIBLE)], ids=ascii
    )
    def test_a_text_of_nothing_visible_has_the_empty_key(self, text: str):
        assert unicode_key(text) == ""


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("São Tomé", "s o tom"),
        ("北京", ""),
        ("C++", "c"),
        ("C#", "c"),
        ("  Two  inner   spaces ", "two  inner   spaces"),
        ("A.B. (1963)", "a b   1963"),
        ("snake_case\ttab", "snake case tab"),
        ("", ""),
    ],
)
def test_the_reference_key_keeps_ascii_letters_digits_and_inner_spaces(text: str, key: str):
    assert reference_key(text) == key
    assert REFERENCE.phrase(text) == key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("The Beatles!", "beatles"),
        ("An  apple,\na day", "apple day"),
        ("theatre", "theatre"),
        ("U.S.A.", "usa"),
        ("the", ""),
        ("Ålesund – Москва", "ålesund – москва"),
    ],
)
def test_the_answer_key_is_squad_s(text: str, key: str):
    assert answer_key(text) == key


class TestTextOptions:
    def test_the_default_phrase_is_the_unicode_key(self):
        assert TextOptions().phrase(" C++ ") == "c++"

    def test_a_fact_normalises_every_part(self):
        assert TextOptions().fact(Triple("Ana", "Works  at", "ACME")) == Triple("ana", "works at", "acme")
        assert REFERENCE.fact(Triple("São", "-", "Tomé")) == Triple("s o", "", "tom")

    @pytest.mark.parametrize(
        "triple", [Triple("\u200b", "is", "b"), Triple("a", " ", "b"), Triple("a", "is", "\ufeff")], ids=ascii
    )
    def test_only_the_reference_keeps_a_fact_with_an_empty_part(self, triple: Triple):
        assert TextOptions().fact(triple) is None
        kept = REFERENCE.fact(triple)
        assert kept is not None
        assert "" in (kept.subject, kept.predicate, kept.object)

    def test_fact_templates(self):
        fact = Triple("o'neil", "born in", "c#")
        assert TextOptions(fact_template="plain").fact_text(fact) == "o'neil born in c#"
        assert TextOptions(fact_template="repr").fact_text(fact) == "(\"o'neil\", 'born in', 'c#')"

    @pytest.mark.parametrize("text", ["Oslo.", "北京", " Oslo.", "<|endoftext|>"])
    def test_a_passage_id_is_a_hash_of_the_exact_text(self, text: str):
        encoded = text.encode()
        assert TextOptions().passage_id(text) == "passage-" + hashlib.sha256(encoded).hexdigest()[:32]
        assert REFERENCE.passage_id(text) == "chunk-" + hashlib.md5(encoded).hexdigest()

    @pytest.mark.parametrize("option", ["normalisation", "fact_template", "content_id"])
    def test_an_unknown_value_is_refused_by_name(self, option: str):
        with pytest.raises(ConfigError, match=rf"text\.{option} must be one of \w+, \w+, got 'nonsense'"):
            TextOptions(**{option: "nonsense"})
