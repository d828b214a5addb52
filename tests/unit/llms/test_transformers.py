"""A chat model through transformers: its logic on a tiny model, and SmolLM2's real weights."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from hipporag_torch.chat import ChatReply, Message, Prompt, Usage
from hipporag_torch.errors import BackendError, ConfigError
from hipporag_torch.llms.batches import Waiting, answered_in_batches
from hipporag_torch.llms.token_stream import TokenStream
from hipporag_torch.llms.transformers import TransformersChatModel

from ...smollm2 import GGUF, folder, needs_smollm2, smollm2
from ...tiny_chat_model import save_tiny_chat_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def prompt(text: str) -> Prompt:
    return (Message("system", "Answer."), Message("user", text))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model that reads bytes, with 64 positions."""
    return save_tiny_chat_model(tmp_path_factory.mktemp("models") / "tiny")


def model_of(tiny: Path, **options: object) -> TransformersChatModel:
    settings = {"model": str(tiny), "device": "cpu", "max_tokens": 6, **options}
    return TransformersChatModel(**settings)  # pyright: ignore[reportArgumentType]


def test_tokens_are_those_of_the_template(tiny: Path):
    # s : H i <end> u : é <end> a : and é is two bytes.
    asked = (Message("system", "Hi"), Message("user", "é"))
    model = model_of(tiny)
    assert model.count_tokens(asked) == 12
    (reply,) = model.reply([asked])
    assert reply.usage.prompt_tokens == 12
    assert reply.usage.completion_tokens <= 6
    assert model.context_tokens == 64


def test_a_reply_is_the_same_alone_and_in_any_batch_and_order(tiny: Path):
    asked = [prompt("x" * length + str(length)) for length in (1, 30, 4, 9, 2, 17, 25)]
    alone = [model_of(tiny, batch_size=1).reply([one])[0] for one in asked]
    for size in (2, 3, 8):
        assert model_of(tiny, batch_size=size).reply(asked) == alone
    shuffled = list(range(len(asked)))
    random.Random(3).shuffle(shuffled)
    replies = model_of(tiny, batch_size=3).reply([asked[row] for row in shuffled])
    assert replies == [alone[row] for row in shuffled]


def test_a_prompt_beyond_the_context_is_refused_with_numbers_and_never_cut(tiny: Path):
    model = model_of(tiny)
    # The template adds 15 tokens to the user's.
    fits, too_long, other = model.reply([prompt("x" * 48), prompt("x" * 49), prompt("x")])
    assert (too_long.finish, too_long.permanent, too_long.usage) == ("error", True, Usage())
    assert "the prompt has 64 tokens, and the context of tiny 64 for prompt and reply" in too_long.error
    assert (fits.finish, fits.usage) == ("length", Usage(1, 63, 1)), "the context has room for one token"
    assert other.usage.prompt_tokens == 16


def test_what_the_template_or_unicode_refuses_is_one_prompts_failure(tiny: Path):
    model = model_of(tiny)
    asked: list[Prompt] = [(Message("user", "a"), Message("assistant", "b")), prompt("a\ud800"), prompt("a")]
    refused, half, fine = model.reply(asked)
    assert "the chat template of tiny refuses the prompt: no assistants" in refused.error
    assert "half of a surrogate pair" in half.error
    assert refused.permanent
    assert half.permanent
    assert fine.usage.calls == 1
    assert model.count_tokens(asked[0]) > 0


def test_template_options_reach_the_template(tiny: Path):
    plain = model_of(tiny).count_tokens(prompt("x"))
    assert model_of(tiny, chat_template_options={"suffix": "a:<end>"}).count_tokens(prompt("x")) == plain + 1
    own = {"chat_template": "{{ messages[-1].content }}"}
    assert model_of(tiny, chat_template_options=own).count_tokens(prompt("abc")) == 3


def test_a_model_without_a_template_says_the_way_out(tiny: Path, tmp_path: Path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for path in tiny.iterdir():
        if path.name != "chat_template.jinja":
            (bare / path.name).write_bytes(path.read_bytes())
    settings = json.loads((bare / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (bare / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ConfigError, match=r"bare has no chat template.*-Instruct.*chat_template_options"):
        model_of(bare).reply([prompt("x")])
    own = {"chat_template": "{{ messages[-1].content }}"}
    assert model_of(bare, chat_template_options=own).reply([prompt("abc")])[0].usage.prompt_tokens == 3


def test_drawn_replies_repeat_with_their_seed_and_leave_the_process_alone(tiny: Path):
    before = torch.random.get_rng_state()
    one, other = (model_of(tiny, temperature=1.0, seed=7, max_tokens=12).reply([prompt("x")]) for _ in "ab")
    assert one == other
    assert torch.equal(torch.random.get_rng_state(), before)
    assert model_of(tiny, temperature=1.0, seed=8, max_tokens=12).reply([prompt("x")]) != one


def test_the_models_own_sampling_settings_take_no_part(tiny: Path, tmp_path: Path):
    other = tmp_path / "tiny"
    other.mkdir()
    for path in tiny.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    settings = json.loads((other / "generation_config.json").read_text())
    settings |= {"do_sample": True, "temperature": 2.0, "top_k": 3, "top_p": 0.4, "repetition_penalty": 1.9}
    (other / "generation_config.json").write_text(json.dumps(settings))
    asked = [prompt("abcabc"), prompt("aaaaaaaa")]
    assert model_of(other).reply(asked) == model_of(tiny).reply(asked)


def test_the_identity_names_weights_and_settings(tiny: Path):
    identity = model_of(tiny).identity
    assert (identity.endpoint, identity.model) == ("transformers", "tiny")
    assert identity.revision.startswith("sha256:")
    assert str(tiny.parent) not in repr(identity)
    assert identity == model_of(tiny, batch_size=2, seed=9).identity, "neither decides a greedy reply"
    for changed in ({"max_tokens": 7}, {"temperature": 0.5}, {"dtype": "bfloat16"}):
        assert model_of(tiny, **changed).identity != identity


def test_roles_with_equal_weights_share_them(tiny: Path):
    changes = ({}, {"temperature": 0.5, "max_tokens": 3}, {"dtype": "bfloat16"})
    one, other, unlike = (model_of(tiny, **changed) for changed in changes)
    assert one._generator is other._generator
    assert one._generator is not unlike._generator
    assert one.identity != other.identity


def test_a_stream_shows_the_reply(tiny: Path):
    pieces: list[str] = []
    model = model_of(tiny)
    reply = model.stream(prompt("abc"), pieces.append)
    assert "".join(pieces) == reply.text
    assert reply == model.reply([prompt("abc")])[0]
    assert model.stream(prompt("x" * 80), pieces.append).permanent


class FakeDecoder:
    """Tokens are bytes."""

    def __call__(self, tokens: list[int]) -> str:
        return bytes(tokens).decode("utf-8", "replace")


def test_a_stream_holds_characters_back_until_they_are_whole():
    pieces: list[str] = []
    stream = TokenStream(pieces.append, FakeDecoder(), prompt_tokens=2)
    stream.put(torch.tensor([[1, 2]]))
    for byte in "aé🦛".encode():
        stream.put(torch.tensor([byte]))
    stream.end()
    assert pieces == ["a", "é", "🦛"]


def test_a_stream_that_ends_in_half_a_character_shows_what_the_reply_has():
    pieces: list[str] = []
    stream = TokenStream(pieces.append, FakeDecoder(), prompt_tokens=0)
    for byte in "aé".encode()[:-1]:
        stream.put(torch.tensor([byte]))
    stream.end()
    assert "".join(pieces) == "a�"


class Memory:
    """Answers as long as a batch's tokens fit, and notes the batches that it was given."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self.sizes: list[int] = []

    def __call__(self, batch: Sequence[Waiting]) -> list[ChatReply]:
        self.sizes.append(len(batch))
        if sum(len(one.tokens) for one in batch) > self._tokens:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [ChatReply(str(one.number)) for one in batch]


def answered(waiting: list[Waiting], size: int, memory: Memory) -> tuple[int, dict[int, ChatReply]]:
    got: dict[int, ChatReply] = {}
    left = answered_in_batches(waiting, size, memory, got.__setitem__)
    return left, got


def test_a_batch_is_halved_when_memory_runs_out(caplog: pytest.LogCaptureFixture):
    memory = Memory(25)
    left, got = answered([Waiting(row, [0] * 10, 5) for row in range(5)], 8, memory)
    assert {row: reply.text for row, reply in got.items()} == {row: str(row) for row in range(5)}
    assert (left, memory.sizes) == (2, [5, 2, 2, 1])
    assert "memory ran out with 5 prompts of up to 10 tokens at once; going on with 2" in caplog.text


def test_a_prompt_that_does_not_fit_alone_is_its_own_failure():
    memory = Memory(25)
    left, got = answered([Waiting(0, [0] * 3, 5), Waiting(1, [0] * 30, 5)], 2, memory)
    assert (left, memory.sizes) == (1, [2, 1, 1])
    assert got[0].text == "0"
    assert "memory ran out with this prompt alone: 30 tokens and up to 5 of a reply" in got[1].error
    assert (got[1].finish, got[1].permanent) == ("error", False)


def test_prompts_of_a_batch_have_the_same_room_and_the_longest_go_first():
    lengths = {0: (3, 5), 1: (9, 2), 2: (4, 5), 3: (9, 2), 4: (1, 5)}
    seen: list[list[int]] = []

    def answer(batch: Sequence[Waiting]) -> list[ChatReply]:
        seen.append([one.number for one in batch])
        return [ChatReply("x") for _ in batch]

    waiting = [Waiting(number, [0] * length, room) for number, (length, room) in lengths.items()]
    answered_in_batches(waiting, 3, answer, lambda *_: None)
    assert seen == [[1, 3], [2, 0, 4]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch_size": 0}, r"llm.batch_size must be a whole number, at least 1, got 0"),
        ({"max_tokens": True}, r"llm.max_tokens must be a whole number"),
        ({"temperature": -1}, r"llm.temperature must be 0 .* or above, got -1"),
        ({"temperature": float("nan")}, r"llm.temperature"),
        ({"seed": -1}, r"llm.seed"),
        ({"dtype": "int8"}, r"llm.dtype must be one of auto, .*, got 'int8'"),
        ({"device_map": "auto"}, r"llm.device=cpu and llm.device_map='auto' both say where"),
        ({"chat_template_options": ["a"]}, r"llm.chat_template_options must hold names and values"),
        ({"model": " "}, r"llm.model must be the name of a model"),
        ({"model": "./nowhere"}, r"llm.model=./nowhere names a folder that does not exist"),
        (
            {"model": "o/n", "trust_remote_code": True},
            r"llm.revision must be 40 hexadecimal digits, got None",
        ),
        (
            {"model": "o/n", "trust_remote_code": True, "revision": "main"},
            r"runs code from o/n.* got 'main'",
        ),
        ({"revision": COMMIT}, r"llm.revision=0123.* is for hub models, but .* is a folder"),
        ({"gguf_file": "a.gguf"}, r"llm.gguf_file=a.gguf is not in the folder of tiny; .*: none"),
    ],
)
def test_options_that_cannot_be(tiny: Path, options: dict[str, object], said: str):
    with pytest.raises(ConfigError, match=said):
        model_of(tiny, **options)


def test_a_limit_of_a_call_that_cannot_be(tiny: Path):
    with pytest.raises(ConfigError, match=r"llm.max_tokens must be"):
        model_of(tiny).reply([prompt("x")], max_tokens=0)


def test_a_folder_that_holds_no_model_says_so(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BackendError, match=r"could not be loaded: [^\n]*copy it again, whole"):
        model_of(tmp_path).reply([prompt("x")])


def test_code_of_a_pinned_model_is_allowed():
    model = TransformersChatModel(model="o/n", trust_remote_code=True, revision=COMMIT, device="cpu")
    assert repr(model) == "TransformersChatModel(model='o/n')"


def test_a_device_map_goes_through_accelerate(tiny: Path):
    pytest.importorskip("accelerate")
    spread = model_of(tiny, device="auto", device_map={"": "cpu"})
    assert spread.reply([prompt("x")]) == model_of(tiny).reply([prompt("x")])


@needs_smollm2
@pytest.mark.slow
def test_a_real_model_knows_the_capital_of_norway_in_any_batch():
    model = smollm2()
    asked = [
        (Message("system", "Answer."), Message("user", "What is the capital of Norway?")),
        prompt("Write a story about a lighthouse. " * 6),
        prompt("東京?"),
    ]
    replies = model.reply(asked)
    assert replies[0] == ChatReply("The capital of Norway is Oslo.", "stop", Usage(1, 23, 8))
    assert [reply.finish for reply in replies[1:]] == ["length", "length"]
    assert [reply.usage.completion_tokens for reply in replies[1:]] == [12, 12]
    assert [model.reply([one])[0] for one in asked] == replies, "padding changes nothing"
    pieces: list[str] = []
    assert model.stream(asked[0], pieces.append) == replies[0]
    assert "".join(pieces) == replies[0].text
    assert len(pieces) > 3


@needs_smollm2
@pytest.mark.slow
def test_the_revision_of_gguf_weights_is_their_files_digest():
    import hashlib

    digest = hashlib.sha256((folder() / GGUF).read_bytes()).hexdigest()
    assert smollm2().identity.revision == f"sha256:{digest}"
    assert smollm2().context_tokens == 8192
