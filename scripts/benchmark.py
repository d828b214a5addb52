"""Measure speed and memory: python scripts/benchmark.py --help"""

import json
import platform
from pathlib import Path
from typing import Any

import hydra
import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from hipporag_torch.config import build_benchmark, conf_dir, require_known_keys
from hipporag_torch.console import clean_errors, console, progress_bar, quiet_third_parties, table


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="benchmark")
def main(cfg: DictConfig) -> None:
    quiet_third_parties()
    with clean_errors():
        require_known_keys(cfg, "benchmark")
        run(cfg, Path(HydraConfig.get().runtime.output_dir))


def run(cfg: DictConfig, directory: Path) -> None:
    benchmark = build_benchmark(cfg)
    with progress_bar() as progress:
        rows = benchmark.run(progress)
    (directory / "benchmark.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    words = [name for name in benchmark.columns if isinstance(rows[0][name], str)]
    columns = [*words, *(name for name in benchmark.columns if name not in words)]
    cells = [[_cell(row[name]) for name in columns] for row in rows]
    headings = [name.replace("_", " ") for name in columns]
    machine = f"{platform.machine()}, {cfg.runtime.device}, {torch.get_num_threads()} threads"
    title = f"{machine}, torch {torch.__version__}"
    console.print(table(title, headings, cells, text_columns=len(words)))
    console.print(f"written to {directory / 'benchmark.json'}", soft_wrap=True)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    main()
