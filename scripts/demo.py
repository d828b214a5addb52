"""The sample corpus from end to end, without a language model: python scripts/demo.py [key=value …]"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from omegaconf import DictConfig
from rich.markup import escape

from hipporag_torch.config import build_dataset, build_memory, build_reader, compose, require_known_keys
from hipporag_torch.console import clean_errors, console, progress_bar, quiet_third_parties, table
from hipporag_torch.console.rows import mostly_from, seeds_text
from hipporag_torch.errors import ConfigError
from hipporag_torch.evaluation import Evaluation, evaluate
from hipporag_torch.explanation import explain
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.types import Answer, Dataset, Question, Ranking
from hipporag_torch.viz.html import write_html
from hipporag_torch.viz.png import draw_png

VARIANTS: Mapping[str, Sequence[str]] = {
    "graph, sentences by spaCy": [],
    "graph, triples by spaCy": ["extractor=spacy", "graph=default"],
    "graph, triples by hand": ["extractor=sample", "graph=default"],
    "dense": ["retriever=dense"],
    "BM25": ["retriever=bm25"],
}
KS = (1, 2, 5, 10)
# Facts that weigh less are only counted.
LEAST_TELLING = 0.02


def main(overrides: Sequence[str]) -> None:
    quiet_third_parties()
    with clean_errors():
        cfg = compose("demo", overrides)
        require_known_keys(cfg, "demo")
        if cfg.show < 0 or cfg.top_k < 1:
            raise ConfigError(f"show must be at least 0 and top_k at least 1, got {cfg.show} and {cfg.top_k}")
        run(cfg, overrides)


def run(cfg: DictConfig, overrides: Sequence[str]) -> None:
    dataset = build_dataset(cfg).load()
    memories: dict[str, HippoRAG] = {}
    results: dict[str, Evaluation] = {}
    with progress_bar() as progress:
        for name, changes in VARIANTS.items():
            memory = build_memory(compose("demo", [*overrides, *changes]))
            memory.add(dataset.documents, lambda stage, *done, n=name: progress(f"{n}: {stage}", *done))
            results[name] = evaluate(dataset, memory.retriever, text=memory.index.text, ks=KS)
            memories[name] = memory
    own = memories[next(iter(VARIANTS))]
    show_corpus(dataset, own)
    shown = telling_questions(dataset, results)[: cfg.show]
    rankings = own.retrieve([question.text for question in shown], top_k=cfg.top_k, trace=True)
    reader = build_reader(cfg, own)
    answers = reader.read(rankings)
    for question, ranking, answer in zip(shown, rankings, answers, strict=True):
        show_question(question, ranking, answer)
    show_recall(results)
    every = own.retrieve([question.text for question in dataset.questions], top_k=cfg.top_k)
    show_answers(dataset, every, reader.read(every))
    if rankings:
        draw(cfg, own, rankings[0])


def show_corpus(dataset: Dataset, memory: HippoRAG) -> None:
    index = memory.index
    console.print(
        f"\n[bold]hipporag_torch[/] on its sample corpus: {len(index.passages)} passages, "
        f"{len(index.phrases):,} phrases, {len(index.facts):,} facts, {index.graph.num_edges:,} edges; "
        f"{len(dataset.questions)} questions. No language model, no key, no download."
    )


def telling_questions(dataset: Dataset, results: Mapping[str, Evaluation]) -> list[Question]:
    """Those that the graph finds whole and dense retrieval does not, in order, before the others."""
    graph, dense = results[next(iter(VARIANTS))].rows, results["dense"].rows
    told = [g.metrics["all_recall@5"] > d.metrics["all_recall@5"] for g, d in zip(graph, dense, strict=True)]
    ranked = sorted(range(len(told)), key=lambda row: not told[row])
    return [dataset.questions[row] for row in ranked]


def show_question(question: Question, ranking: Ranking, answer: Answer) -> None:
    console.rule()
    console.print(f"[bold]{escape(question.text)}[/]\n[bold green]{escape(answer.text)}[/]")
    console.print(
        f"[dim]{escape(answer.method)}; the right answer is {escape(' or '.join(question.answers))}[/]"
    )
    trace = ranking.trace
    traced = {passage.passage_id: passage for passage in trace.passages} if trace else {}
    rows = [
        [
            str(place),
            "✓" if passage.text in question.gold_texts else "",
            f"{score:.4f}",
            passage.text.partition("\n")[0],
            ", ".join(phrase for phrase, _ in traced[passage.id].through[:3]) if passage.id in traced else "",
            mostly_from(traced.get(passage.id)),
        ]
        for place, (passage, score) in enumerate(zip(ranking.passages, ranking.scores, strict=True), start=1)
    ]
    columns = ["", "gold", "score", "passage", "reached through", "mostly from"]
    console.print(table("", columns, rows, text_columns=6))
    if trace:
        console.print(f"[dim]route[/] {ranking.route}\n[dim]seeds[/] {escape(seeds_text(trace))}")
        telling = [fact for fact in trace.facts if fact.score >= LEAST_TELLING]
        for fact in telling:
            console.print(f"[dim]fact {fact.score:.2f}[/] {escape(' | '.join(fact.fact.parts))}")
        console.print(f"[dim]{len(trace.facts) - len(telling)} other facts weigh next to nothing[/]")


def show_recall(results: Mapping[str, Evaluation]) -> None:
    columns = ["", *(f"recall@{k}" for k in KS), "all@5"]
    rows = [
        [
            name,
            *(f"{evaluation.metrics[f'recall@{k}']:.3f}" for k in KS),
            f"{evaluation.metrics['all_recall@5']:.3f}",
        ]
        for name, evaluation in results.items()
    ]
    console.rule()
    console.print("[bold]Gold passages found, over all questions[/]")
    console.print(table("", columns, rows))


def show_answers(dataset: Dataset, rankings: Sequence[Ranking], answers: Sequence[Answer]) -> None:
    picked = sum(_holds(q, a.text) for q, a in zip(dataset.questions, answers, strict=True))
    read = sum(
        any(_holds(question, passage.text) for passage in ranking.passages)
        for question, ranking in zip(dataset.questions, rankings, strict=True)
    )
    console.print(
        f"A right answer stands in the passages read for {read} of {len(answers)} questions, and in the one "
        f"sentence picked for {picked}: a language model reads better than that."
    )


def _holds(question: Question, text: str) -> bool:
    return any(known.casefold() in text.casefold() for known in question.answers)


def draw(cfg: DictConfig, memory: HippoRAG, ranking: Ranking) -> None:
    folder = Path(cfg.output)
    folder.mkdir(parents=True, exist_ok=True)
    explanation = explain(memory.index, ranking)
    picture, page = folder / "question.png", folder / "question.html"
    draw_png(explanation, picture)
    write_html(explanation, page)
    console.print(f"The first question's sub-graph: {picture}, and as a page: {page}", soft_wrap=True)


if __name__ == "__main__":
    main(sys.argv[1:])
