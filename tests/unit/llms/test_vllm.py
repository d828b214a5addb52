"""A chat model through vLLM: what our class makes of it, with a stand-in for the package."""

import sys
from pathlib import Path

import pytest

from hipporag_torch.chat import ChatReply, Message, Prompt, Usage
from hipporag_torch.errors import BackendError, ConfigError
from hipporag_torch.llms.vllm import VLLMChatModel

from ...tiny_chat_model import save_tiny_chat_model
from ...vllm_fake import FakeVLLM

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def prompt(text: str) -> Prompt:
    return (Message("system", "Hi"), Message("user", text))


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_chat_model(tmp_path_factory.mktemp("vllm") / "tiny")


@pytest.fixture
def tiny(saved: Path, tmp_path: Path) -> Path:
    """Another path for each test, so that none meets an engine of the test before."""
    link = tmp_path / "tiny"
    link.symlink_to(saved)
    return link


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> FakeVLLM:
    return FakeVLLM().install(monkeypatch)


def model_of(tiny: Path, **options: object) -> VLLMChatModel:
    return VLLMChatModel(model=str(tiny), **options)  # pyright: ignore[reportArgumentType]


def test_replies_are_in_order_across_lots_with_usage(tiny: Path, vllm: FakeVLLM):
    got: list[int] = []
    asked = [prompt(text) for text in "abcde"]
    replies = model_of(tiny, batch_size=2).reply(asked, accept=lambda number, _: not got.append(number))
    assert replies == [ChatReply(f"reply to {text}", "stop", Usage(1, 1, 3)) for text in "abcde"]
    assert [len(call["messages"]) for call in vllm.chats] == [2, 2, 1]
    assert got == [0, 1, 2, 3, 4]
    assert vllm.chats[0]["messages"][0] == [
        {"role": "system", "content": "Hi"},
        {"role": "user", "content": "a"},
    ]


def test_what_was_had_is_handed_on_before_a_later_lot_fails(tiny: Path, vllm: FakeVLLM):
    def answer(text: str) -> str:
        if text == "c":
            raise RuntimeError("EngineCore died")
        return text

    vllm.answer = answer
    got: list[ChatReply] = []
    with pytest.raises(BackendError, match=r"vLLM failed with tiny: EngineCore died.*run again"):
        model_of(tiny, batch_size=2).reply(
            [prompt(text) for text in "abcd"], accept=lambda _, reply: not got.append(reply)
        )
    assert [reply.text for reply in got] == ["a", "b"]


def test_one_prompt_that_cannot_be_asked_never_sinks_a_lot(tiny: Path, vllm: FakeVLLM):
    asked = [prompt("a"), prompt("x" * 60), prompt("\ud800"), (Message("assistant", "b"),), prompt("c")]
    replies = model_of(tiny).reply(asked)
    assert [reply.text for reply in replies] == ["reply to a", "", "", "", "reply to c"]
    assert [reply.permanent for reply in replies] == [False, True, True, True, False]
    assert "the context of tiny 64" in replies[1].error
    assert len(vllm.chats[0]["messages"]) == 2


def test_a_lot_without_a_usable_prompt_asks_nothing(tiny: Path, vllm: FakeVLLM):
    assert model_of(tiny).reply([prompt("x" * 60)])[0].permanent
    assert model_of(tiny).reply([]) == []
    assert vllm.chats == []


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("repetition", "length"),
        ("abort", "error"),
        ("error", "error"),
    ],
)
def test_how_a_reply_ended(tiny: Path, vllm: FakeVLLM, finish: str, expected: str):
    vllm.finish = {"a": finish}
    (reply,) = model_of(tiny).reply([prompt("a")])
    assert reply.finish == expected
    assert bool(reply.error) == (expected == "error")
    assert not reply.permanent


def test_an_empty_reply_is_an_error(tiny: Path, vllm: FakeVLLM):
    vllm.answer = lambda text: ""
    (reply,) = model_of(tiny).reply([prompt("a")])
    assert (reply.finish, reply.permanent) == ("error", True)
    assert model_of(tiny, temperature=1.0).reply([prompt("a")])[0].permanent is False


def test_sampling_says_the_limit_the_seed_and_the_schema(tiny: Path, vllm: FakeVLLM):
    model = model_of(tiny, max_tokens=9, temperature=0.5, seed=4)
    model.reply([prompt("a")], schema=SCHEMA)
    model.reply([prompt("a"), prompt("x" * 45)], max_tokens=30)
    bound, (free, near_the_end) = vllm.chats[0]["sampling_params"][0], vllm.chats[1]["sampling_params"]
    assert (bound.max_tokens, bound.temperature, bound.seed) == (9, 0.5, 4)
    assert bound.structured_outputs.json == SCHEMA
    assert free.structured_outputs is None
    assert free.max_tokens == 30
    assert near_the_end.max_tokens == 64 - model.count_tokens(prompt("x" * 45))
    assert vllm.engines[0].options["structured_outputs_config"]["backend"] == "xgrammar"


def test_without_structured_output_the_prompt_alone_asks(tiny: Path, vllm: FakeVLLM):
    model_of(tiny, structured=False).reply([prompt("a")], schema=SCHEMA)
    assert vllm.chats[0]["sampling_params"][0].structured_outputs is None
    assert vllm.chats[0]["sampling_params"][0].seed is None
    assert vllm.engines[0].options["structured_outputs_config"] is None


def test_a_schema_that_vllm_refuses_says_the_way_out(tiny: Path, vllm: FakeVLLM):
    def answer(text: str) -> str:
        raise ValueError("the grammar is unsupported")

    vllm.answer = answer
    with pytest.raises(ConfigError, match=r"the grammar is unsupported; set llm.structured=false"):
        model_of(tiny).reply([prompt("a")], schema=SCHEMA)


def test_template_options_reach_vllm_and_the_count(tiny: Path, vllm: FakeVLLM):
    options = {"suffix": "a:x", "chat_template": "{{ messages[-1].content }}{{ suffix }}"}
    model = model_of(tiny, chat_template_options=options)
    model.reply([prompt("a")])
    assert vllm.chats[0]["chat_template"] == options["chat_template"]
    assert vllm.chats[0]["chat_template_kwargs"] == {"suffix": "a:x"}
    assert model.count_tokens(prompt("a")) == 4


def test_roles_with_equal_engines_share_one(tiny: Path, vllm: FakeVLLM):
    one, other = model_of(tiny, max_tokens=4), model_of(tiny, temperature=0.7)
    unlike = model_of(tiny, max_model_len=48)
    for model in (one, other, unlike):
        model.reply([prompt("a")])
    assert len(vllm.engines) == 2
    assert one.identity != other.identity


def test_the_context_is_the_option_or_the_models(tiny: Path, vllm: FakeVLLM):
    assert model_of(tiny).context_tokens == 64
    assert model_of(tiny, max_model_len=48).context_tokens == 48
    assert vllm.engines == [], "no engine was started for it"


def test_a_stream_shows_the_whole_reply(tiny: Path, vllm: FakeVLLM):
    pieces: list[str] = []
    assert model_of(tiny).stream(prompt("a"), pieces.append).text == "reply to a"
    assert pieces == ["reply to a"]


def test_the_identity_holds_what_decides_and_no_path(tiny: Path, vllm: FakeVLLM):
    identity = model_of(tiny).identity
    assert (identity.endpoint, identity.model) == ("vllm", "tiny")
    assert identity.revision.startswith("sha256:")
    assert str(tiny) not in repr(identity)
    assert (
        identity == model_of(tiny, tensor_parallel_size=2, gpu_memory_utilization=0.5, batch_size=3).identity
    )
    for changed in ({"quantization": "fp8"}, {"structured": False}, {"dtype": "float32"}):
        assert model_of(tiny, **changed).identity != identity


def test_without_the_package_the_extra_is_named(tiny: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ConfigError, match=r"pip install 'hipporag-torch\[vllm\]'"):
        model_of(tiny).reply([prompt("a")])


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"data_parallel_size": 2}, ConfigError, r"refuses .*single-process usage; .* extract in shards"),
        ({"engine_options": {"nonsense": 1}}, ConfigError, r"unexpected argument 'nonsense'"),
        ({"engine_options": {"dtype": "float32"}}, ConfigError, r"engine_options states dtype"),
        (
            {"gpu_memory_utilization": 1.0},
            BackendError,
            r"could not start .*initialization failed.*lower gpu",
        ),
    ],
)
def test_an_engine_that_does_not_start(
    tiny: Path, vllm: FakeVLLM, options: dict[str, object], error: type[Exception], said: str
):
    with pytest.raises(error, match=said):
        model_of(tiny, **options).reply([prompt("a")])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tensor_parallel_size": 0}, r"llm.tensor_parallel_size must be a whole number"),
        ({"gpu_memory_utilization": 0}, r"llm.gpu_memory_utilization must be above 0"),
        ({"max_model_len": 0}, r"llm.max_model_len must be a whole number, at least 1, or null"),
        ({"trust_remote_code": True, "model": "o/n"}, r"llm.revision must be 40"),
        ({"engine_options": "x"}, r"llm.engine_options must hold names and values"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], said: str):
    with pytest.raises(ConfigError, match=said):
        VLLMChatModel(**{"model": "o/n", **options})  # pyright: ignore[reportArgumentType]
