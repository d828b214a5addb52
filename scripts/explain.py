"""Index a corpus, ask it one question and show what carried the mass: python scripts/explain.py --help"""

import json
from dataclasses import asdict
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from hipporag_torch.config import build_dataset, build_models, conf_dir, flag, require_known_keys
from hipporag_torch.console import clean_errors, console, progress_bar, quiet_third_parties
from hipporag_torch.console.reports import show_opened, warn_of_failed
from hipporag_torch.console.usage import show_costs, show_usage
from hipporag_torch.dry_run import run_costs
from hipporag_torch.errors import ConfigError
from hipporag_torch.explanation import ExplainedPassage, Explanation, explain, passage_title
from hipporag_torch.opening import fill, lacks_corpus, open_memory
from hipporag_torch.retrievers.questions import check_call
from hipporag_torch.types import TracedFact
from hipporag_torch.viz.html import write_html
from hipporag_torch.viz.png import draw_png, require_matplotlib
from hipporag_torch.viz.text import of_own, percent, shares_text


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="explain")
def main(cfg: DictConfig) -> None:
    quiet_third_parties()
    with clean_errors():
        require_known_keys(cfg, "explain")
        run(cfg, Path(HydraConfig.get().runtime.output_dir))


def run(cfg: DictConfig, directory: Path) -> None:
    question = asked(cfg)
    check_call([question], cfg.top_k)
    models = build_models(cfg)
    fills = lacks_corpus(cfg)
    documents = build_dataset(cfg).documents() if fills else None
    if flag(cfg, "dry_run"):
        show_costs(run_costs(cfg, models, [question], documents))
        console.print("[dim]dry run: no model was asked, nothing was written[/]")
        return
    if cfg.png:
        # Before the work, not after it.
        require_matplotlib()
    overrides = list(HydraConfig.get().overrides.task)
    with open_memory(cfg, overrides, fills=fills, models=models) as memory:
        if documents is not None:
            with progress_bar() as progress:
                report = fill(memory, documents, progress)
            warn_of_failed(report.failed)
        else:
            show_opened(cfg.index.path, memory.index)
        ranking = memory.retrieve([question], top_k=cfg.top_k, trace=True)[0]
        explanation = explain(memory.index, ranking, max_nodes=cfg.max_nodes)
    console.print(tree_of(explanation))
    show_usage(models)
    for name in write(cfg, explanation, directory):
        console.print(f"written to {directory / name}", soft_wrap=True)


def asked(cfg: DictConfig) -> str:
    """The question of `cfg.question`."""
    if OmegaConf.is_missing(cfg, "question") or cfg.question is None:
        raise ConfigError("question is not set; give it as 'question=\"Who founded it?\"'")
    if OmegaConf.is_config(cfg.question):
        raise ConfigError(
            f"question must be one question, got {cfg.question}; scripts/retrieve.py takes a list"
        )
    return str(cfg.question)


def write(cfg: DictConfig, explanation: Explanation, directory: Path) -> list[str]:
    """Write the files that `cfg` asks for; their names."""
    names = ["explanation.json"]
    content = json.dumps(asdict(explanation), ensure_ascii=False, sort_keys=True, indent=2)
    (directory / names[0]).write_text(content + "\n", encoding="utf-8")
    if cfg.png:
        names.append("explanation.png")
        draw_png(explanation, directory / names[-1])
    if cfg.html:
        names.append("explanation.html")
        write_html(explanation, directory / names[-1])
    return names


def tree_of(explanation: Explanation) -> Tree:
    """Question → route → facts, seeds and passages with the phrases through which their mass came."""
    root = Tree(_text(f"\n[bold]{escape(explanation.question)}[/]"), guide_style="dim")
    route = root.add(_text(f"route [bold]{explanation.route}[/]: [dim]{escape(explanation.why)}[/]"))
    kept = [fact for fact in explanation.facts if fact.kept]
    if explanation.facts:
        facts = route.add(_text("facts kept" if kept else "facts considered, none kept"))
        for fact in kept or explanation.facts:
            facts.add(_text(_fact(fact)))
    if found := [node for node in explanation.nodes if node.kind == "phrase" and node.seed_share]:
        seeds = route.add(_text("seeds"))
        for node in found:
            given = f" [dim]({shares_text(node.sources)})[/]" if node.sources else ""
            seeds.add(_text(f"[cyan]{percent(node.seed_share):>7}[/]  {escape(node.label)}{given}"))
    mass = {node.rank: node.mass_share for node in explanation.nodes}
    if explanation.passages:
        passages = route.add(_text("passages"))
        for passage in explanation.passages:
            _add_passage(passages, passage, mass.get(passage.rank, 0.0))
    return root


def _text(markup: str) -> Text:
    """Markup in which `:smile:` stays what a passage says."""
    return Text.from_markup(markup, emoji=False)


def _fact(fact: TracedFact) -> str:
    return f"[cyan]{fact.score:.3f}[/]  {escape(' | '.join(fact.fact.parts))}"


def _add_passage(tree: Tree, found: ExplainedPassage, mass: float) -> None:
    figure = percent(mass) if mass else f"{found.score:.4f}"
    title = escape(passage_title(found.passage))
    branch = tree.add(_text(f"[bold]{found.rank}[/]  [cyan]{figure:>7}[/]  {title}"))
    for phrase, flow in found.through:
        branch.add(_text(f"[cyan]{percent(flow):>7}[/]  through {escape(phrase)}"))
    if found.sources:
        branch.add(_text(f"[dim]of its mass, in %: {shares_text(of_own(found.sources))}[/]"))
    if found.restart and mass:
        branch.add(_text(f"[cyan]{percent(found.restart):>7}[/]  [dim]from its own seed[/]"))


if __name__ == "__main__":
    main()
