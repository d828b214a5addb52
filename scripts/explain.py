"""Index a corpus, ask it one question and show what carried the mass: python scripts/explain.py --help"""

import json
from dataclasses import asdict
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from hipporag_torch.config import build_dataset, build_models, conf_dir, flag, require_known_keys
from hipporag_torch.console import clean_errors, console, progress_bar, quiet_third_parties
from hipporag_torch.console.explanation import tree_of
from hipporag_torch.console.reports import show_opened, warn_of_failed
from hipporag_torch.console.usage import show_costs, show_usage
from hipporag_torch.dry_run import run_costs
from hipporag_torch.errors import ConfigError
from hipporag_torch.explanation import Explanation, explain
from hipporag_torch.opening import fill, lacks_corpus, open_memory
from hipporag_torch.retrievers.questions import check_call
from hipporag_torch.viz.html import write_html
from hipporag_torch.viz.png import draw_png, require_matplotlib


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


if __name__ == "__main__":
    main()
