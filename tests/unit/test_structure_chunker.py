"""Passages by structure: where they are cut, what stands in front of them, what their metadata says."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.chunkers import StructureChunker
from hipporag_torch.errors import ConfigError
from hipporag_torch.types import Chunk, Document


def chunks(text: str, *, fewest: int = 0, most: int = 8, path: str = "a.md") -> list[Chunk]:
    chunker = StructureChunker(min_words=fewest, max_words=most)
    return chunker.chunk(Document(text, metadata={"path": path}))


def texts(text: str, *, fewest: int = 0, most: int = 8, path: str = "a.md") -> list[str]:
    return [chunk.text for chunk in chunks(text, fewest=fewest, most=most, path=path)]


def words(count: int, start: int = 0) -> str:
    return " ".join(f"w{number}" for number in range(start, start + count))


class TestMarkdown:
    def test_a_section_is_a_passage_below_the_headings_above_it(self):
        found = chunks(
            "# Guide\n\nHello.\n\n## Install\n\nRun it.\n\n### Linux\n\nUse apt.\n\n## Use\n\nCall it.\n"
        )
        assert [chunk.text for chunk in found] == [
            "# Guide\n\nHello.",
            "Guide\n\n## Install\n\nRun it.",
            "Guide > Install\n\n### Linux\n\nUse apt.",
            "Guide\n\n## Use\n\nCall it.",
        ]
        assert [chunk.metadata["heading"] for chunk in found] == [
            "Guide",
            "Guide > Install",
            "Guide > Install > Linux",
            "Guide > Use",
        ]
        assert [chunk.metadata["chunk"] for chunk in found] == [0, 1, 2, 3]

    def test_offsets_are_in_the_chunk_and_in_its_metadata(self):
        text = "# A\n\none\n\n# B\n\ntwo\n"
        first, second = chunks(text)
        assert (first.start, first.end, second.start, second.end) == (0, 8, 10, 18)
        assert second.metadata == {"heading": "B", "chunk": 1, "start": 10, "end": 18}
        assert text[10:18] == "# B\n\ntwo"

    def test_the_rest_of_a_long_section_stands_below_its_heading(self):
        assert texts(f"# A\n\n{words(5)}\n\n{words(5, 5)}\n") == [
            f"# A\n\n{words(5)}",
            f"A\n\n{words(5, 5)}",
        ]

    def test_a_long_section_is_cut_into_parts_of_about_the_same_size(self):
        paragraphs = "\n\n".join(words(2, start) for start in range(0, 18, 2))
        assert [len(text.split()) for text in texts(paragraphs)] == [6, 6, 6]

    def test_underlined_headings_count(self):
        assert texts("Title\n=====\n\none\n\nPart\n----\n\ntwo\n") == [
            "Title\n=====\n\none",
            "Title\n\nPart\n----\n\ntwo",
        ]

    def test_a_heading_of_over_20_words_is_a_paragraph(self):
        title = words(21)
        (found,) = chunks(f"# {title}\n\ntext\n", most=30)
        assert found.metadata["heading"] == ""

    def test_a_heading_without_text_goes_with_the_section_below_it(self):
        assert texts("# A\n\n## B\n\none two\n\n## C\n\nthree\n") == [
            "# A\n\n## B\n\none two",
            "A\n\n## C\n\nthree",
        ]

    def test_a_mark_in_code_is_no_heading_and_code_is_not_cut(self):
        code = "```\n# one\n\ntwo three\n\nfour\n```"
        assert texts(f"{words(6)}\n\n{code}\n\n{words(6, 6)}\n") == [words(6), code, words(6, 6)]

    def test_code_that_alone_is_too_long_is_cut_between_lines(self):
        lines = [words(3, start) for start in range(0, 12, 3)]
        code = "\n".join(["```", *lines, "```"])
        assert [len(text.split()) for text in texts(code)] == [7, 7]
        assert all(text.splitlines()[0] in ("```", lines[2]) for text in texts(code))

    def test_a_table_is_not_cut(self):
        table = "| a | b |\n|---|---|\n| c | d |"
        assert texts(f"{words(8)}\n\n{table}\n", most=12) == [words(8), table]

    def test_a_long_list_is_cut_between_its_items(self):
        items = [f"- {words(4, start)}" for start in range(0, 12, 4)]
        assert texts("\n".join(items)) == items

    def test_a_long_paragraph_is_cut_between_sentences(self):
        assert texts("One two three four. Five six seven! Eight nine ten?") == [
            "One two three four.",
            "Five six seven! Eight nine ten?",
        ]

    def test_a_line_without_an_end_is_cut_between_words(self):
        assert texts(words(20)) == [words(8), words(8, 8), words(4, 16)]

    def test_a_script_without_spaces_counts_by_characters(self):
        assert texts("北京位于中国北部。它是首都。") == ["北京位于中国北", "部。它是首都。"]

    def test_indented_code_keeps_its_first_indentation(self):
        assert texts(f"{words(8)}\n\n    code\n    more\n") == [words(8), "    code\n    more"]

    def test_front_matter_gives_a_title_and_stays_in_the_text(self):
        found = chunks('---\ntitle: "My notes"\ntags: [a]\n---\n\n## Part\n\none two three\n', most=9)
        assert found[0].text.startswith('---\ntitle: "My notes"')
        assert found[-1].text == "My notes\n\n## Part\n\none two three"

    def test_a_title_that_is_repeated_stands_once(self):
        text = f"---\ntitle: Notes\n---\n# Notes\n\n{words(5)}\n\n## Part\n\n{words(5)}\n"
        assert chunks(text)[-1].metadata["heading"] == "Notes > Part"

    def test_definitions_of_links_alone_are_text(self):
        assert texts("[a]: http://b.example\n") == ["[a]: http://b.example"]

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_line_ends_stay_as_they_are(self, end: str):
        text = end.join(["# A", "", "one", "two", "", "# B", "", "three"])
        assert texts(text) == [end.join(["# A", "", "one", "two"]), end.join(["# B", "", "three"])]


class TestJoining:
    def test_short_sections_below_the_same_heading_are_joined(self):
        assert texts("# A\n\none\n\n## B\n\ntwo\n\n## C\n\nthree\n", fewest=4, most=20) == [
            "# A\n\none\n\n## B\n\ntwo\n\n## C\n\nthree"
        ]

    def test_they_are_not_joined_where_the_heading_in_front_would_be_wrong(self):
        text = f"# T\n\n{words(8)}\n\n## A\n\n{words(8)}\n\n### A.1\n\nshort\n\n## B\n\n{words(8)}\n"
        assert [chunk.metadata["heading"] for chunk in chunks(text, fewest=5, most=12)] == [
            "T",
            "T > A",
            "T > A > A.1",
            "T > B",
        ]

    def test_the_last_short_one_is_joined_to_the_one_before(self):
        assert len(chunks(f"# A\n\n{words(8)}\n\n## B\n\nshort\n", fewest=5, most=20)) == 1

    def test_none_is_joined_beyond_the_limit(self):
        assert len(chunks(f"# A\n\n{words(8)}\n\n# B\n\nshort\n", fewest=5, most=12)) == 2


class TestText:
    def test_headings_have_levels_in_the_order_of_their_marks(self):
        text = "=====\nTitle\n=====\n\none\n\nPart\n----\ntwo\n\nSub\n~~~\n\nthree\n\nNext\n----\n\nfour\n"
        assert [c.metadata["heading"] for c in chunks(text, path="a.rst")] == [
            "Title",
            "Title > Part",
            "Title > Part > Sub",
            "Title > Next",
        ]

    def test_a_literal_block_stays_with_its_paragraph_and_whole(self):
        literal = "Run this::\n\n    one\n\n    two\n\n    three"
        assert texts(f"{words(6)}\n\n{literal}\n\nAfter it.\n", path="a.rst") == [
            words(6),
            f"{literal}\n\nAfter it.",
        ]

    def test_a_simple_table_with_blank_lines_is_whole(self):
        table = "== ==\na  b\n== ==\n1  2\n\n3  4\n== =="
        assert texts(f"{words(8)}\n\n{table}\n\n{words(8)}\n", path="a.txt", most=12)[1] == table

    def test_a_hash_is_no_heading_in_plain_text(self):
        (found,) = chunks("# not a heading\n\ntext\n", path="a.txt")
        assert found.metadata["heading"] == ""

    def test_a_rule_alone_is_no_heading(self):
        (found,) = chunks("-----\n\none\n\n-----\n", path="a.txt")
        assert found.metadata["heading"] == ""

    def test_the_source_says_what_it_is_where_no_path_does(self):
        text = "# a\n\nb\n"
        of_text = StructureChunker().chunk(Document(text, source_id="x.TXT"))
        of_markdown = StructureChunker().chunk(Document(text, source_id="x"))
        assert (of_text[0].metadata["heading"], of_markdown[0].metadata["heading"]) == ("", "a")


HEADINGS = ["# A", "## B b", "Title", "=====", "-----"]
EXACT = ["```", "| a | b |", "|---|---|", "    code here", "== ==", "text::", ".. note::"]
PROSE = ["- item", "  - deep", "> quote", "", "some words in a line. And more!", "北京位于中国。", "x" * 200]
LINES = st.sampled_from([*HEADINGS, *EXACT, *PROSE])
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@given(
    lines=st.lists(st.tuples(LINES, ENDS), min_size=1),
    limits=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    path=st.sampled_from(["a.md", "a.rst"]),
)
def test_pieces_are_the_text_in_order_and_within_the_limit(
    lines: list[tuple[str, str]], limits: tuple[int, int], path: str
) -> None:
    text = "".join(line + end for line, end in lines)
    if not text.strip():
        text += "x"
    fewest, most = limits[0], 1 + sum(limits)
    found = chunks(text, fewest=fewest, most=most, path=path)
    edges = [0, *(edge for chunk in found for edge in (chunk.start, chunk.end)), len(text)]
    assert all(before <= after for before, after in pairwise(edges))
    assert not "".join(text[end:start] for end, start in zip(edges[::2], edges[1::2], strict=True)).strip()
    for chunk in found:
        piece = text[chunk.start : chunk.end]
        assert chunk.text.endswith(piece)
        assert len([word for word in piece.split() if len(word) < 64]) <= most


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_words": 0}, "max_words must be at least 1, got 0"),
        ({"min_words": 5, "max_words": 4}, "min_words must be from 0 to chunker.max_words=4, got 5"),
        ({"min_words": -1}, "got -1"),
        ({"markup": "html"}, "auto, markdown or text, got 'html'"),
    ],
)
def test_options_out_of_range_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        StructureChunker(**options)
