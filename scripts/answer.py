"""Answer questions from a corpus or an index: python scripts/answer.py --help"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from rich.markup import escape

from hipporag_torch.config import (
    build_dataset,
    build_models,
    build_reader,
    conf_dir,
    flag,
    require_known_keys,
    takes_part,
)
from hipporag_torch.console import clean_errors, console, progress_bar, quiet_third_parties, table, warn
from hipporag_torch.console.answers import odd, show_piece, title_or_source
from hipporag_torch.console.reports import show_opened, warn_of_failed
from hipporag_torch.console.rows import shortened
from hipporag_torch.console.usage import show_costs, show_usage
from hipporag_torch.datasets.asked import Asked, read_questions
from hipporag_torch.dry_run import run_costs
from hipporag_torch.errors import ConfigError
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.llms.roles import ChatModels
from hipporag_torch.opening import fill, lacks_corpus, open_memory
from hipporag_torch.protocols import Reader
from hipporag_torch.readers import LLMReader
from hipporag_torch.retrievers.questions import check_call
from hipporag_torch.types import Answer, Ranking

# Read and written at once: what a budget ends after has been written.
_QUESTIONS_AT_ONCE = 256


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="answer")
def main(cfg: DictConfig) -> None:
    quiet_third_parties()
    with clean_errors():
        require_known_keys(cfg, "answer")
        run(cfg, Path(HydraConfig.get().runtime.output_dir))


def run(cfg: DictConfig, directory: Path) -> None:
    asked = asked_of(cfg)
    top_k = cfg.reader.get("qa_top_k", 5) if cfg.top_k is None else cfg.top_k
    check_call([question.text for question in asked], top_k)
    models = build_models(cfg)
    fills = lacks_corpus(cfg)
    documents = build_dataset(cfg).documents() if fills else None
    if flag(cfg, "dry_run"):
        show_costs(run_costs(cfg, models, [question.text for question in asked], documents))
        console.print("[dim]dry run: no model was asked, nothing was written[/]")
        return
    if takes_part(cfg, "reader", "llm"):
        # What is wrong with it shows before the work, not after it.
        models.get("reading")
    overrides = list(HydraConfig.get().overrides.task)
    with open_memory(cfg, overrides, fills=fills, models=models) as memory:
        if documents is not None:
            with progress_bar() as progress:
                report = fill(memory, documents, progress)
            warn_of_failed(report.failed)
        else:
            show_opened(cfg.index.path, memory.index)
        answer_all(
            memory, build_reader(cfg, memory, models), asked, top_k, directory / "answers.jsonl", models
        )
    console.print(f"written to {directory / 'answers.jsonl'}", soft_wrap=True)


def asked_of(cfg: DictConfig) -> list[Asked]:
    """The questions of `cfg.question`, or of the file `cfg.questions.path`."""
    if (cfg.question is None) == (cfg.questions.path is None):
        raise ConfigError(
            "one of question and questions.path must be set: 'question=\"Who founded it?\"', a list of them, "
            "or questions.path=FILE with one a line"
        )
    if cfg.questions.path is not None:
        return read_questions(str(cfg.questions.path))
    given = OmegaConf.to_container(cfg.question) if OmegaConf.is_list(cfg.question) else [cfg.question]
    return [Asked(str(number), str(text)) for number, text in enumerate(given)]  # type: ignore[arg-type]


def answer_all(
    memory: HippoRAG, reader: Reader, asked: Sequence[Asked], top_k: int, path: Path, models: ChatModels
) -> None:
    """Answer block by block, show the answers and write them."""
    try:
        for start in range(0, len(asked), _QUESTIONS_AT_ONCE):
            block = asked[start : start + _QUESTIONS_AT_ONCE]
            rankings = memory.retrieve([question.text for question in block], top_k=top_k)
            streams = isinstance(reader, LLMReader) and len(asked) == 1 and console.is_terminal
            if isinstance(reader, LLMReader) and streams:
                answers = [streamed(reader, rankings[0])]
            else:
                answers = reader.read(rankings)
            with path.open("a" if start else "w", encoding="utf-8", newline="\n") as file:
                for question, ranking, answer in zip(block, rankings, answers, strict=True):
                    file.write(json.dumps(row_of(question, ranking, answer)) + "\n")
                    show_answer(ranking, answer, asked=not streams)
    finally:
        # Also where a budget ends it: what was spent is what one wants to know then.
        show_usage(models)


def streamed(reader: LLMReader, ranking: Ranking) -> Answer:
    """The answer to a question, shown as it comes."""
    console.print(f"\n[bold]{escape(ranking.question)}[/]", emoji=False)
    answer = reader.read_streaming(ranking, show_piece)
    console.print()
    return answer


def row_of(question: Asked, ranking: Ranking, answer: Answer) -> Mapping[str, Any]:
    """A line of answers.jsonl: the answer, and all passages that were retrieved for it."""
    read = set(answer.passage_ids)
    passages = [
        {**asdict(passage), "score": score, "read": passage.id in read}
        for passage, score in zip(ranking.passages, ranking.scores, strict=True)
    ]
    return {
        "id": question.id,
        "question": question.text,
        "answer": answer.text,
        "citations": answer.citations,
        "score": answer.score,
        "flag": answer.flag,
        "reason": answer.reason,
        "method": answer.method,
        "reply": answer.reply,
        "usage": asdict(answer.usage),
        "passages": passages,
        "passages_left_out": answer.passages_left_out,
        "retrieval": {
            "route": ranking.route,
            "reason": ranking.reason,
            "thoughts": ranking.thoughts,
            "dropped": dict(ranking.dropped),
            "usage": asdict(ranking.usage),
        },
    }


def show_answer(ranking: Ranking, answer: Answer, *, asked: bool) -> None:
    if asked:
        console.print(f"\n[bold]{escape(ranking.question)}[/]", emoji=False)
    console.print(f"[bold green]{escape(answer.text) or '–'}[/]", highlight=False, emoji=False)
    for number, thought in enumerate(ranking.thoughts, start=1):
        console.print(f"[dim]thought {number}:[/] {escape(thought)}", highlight=False, emoji=False)
    cited, read = set(answer.citations), set(answer.passage_ids)
    rows = [
        [
            str(place),
            "cited" if passage.id in cited else "" if passage.id in read else "not read",
            f"{score:.4f}",
            shortened(passage.text, 120),
            ", ".join(shortened(title_or_source(source), 40) for source in passage.sources[:3]),
        ]
        for place, (passage, score) in enumerate(zip(ranking.passages, ranking.scores, strict=True), start=1)
    ]
    console.print(table("", ["", "", "score", "passage", "sources"], rows, text_columns=5))
    console.print(f"[dim]{escape(answer.method)}; route {ranking.route}[/]", soft_wrap=True, highlight=False)
    if ranking.reason:
        warn(f"retrieval: {shortened(ranking.reason, 300)}")
    if answer.flag or answer.passages_left_out:
        warn(odd(answer))


if __name__ == "__main__":
    main()
