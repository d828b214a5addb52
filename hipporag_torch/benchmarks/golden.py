"""The reference implementation's vectors of its own texts, so that measuring need not embed 35,000 strings."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.errors import DatasetError
from hipporag_torch.protocols import EmbedderIdentity

EXTRACTIONS = "openie_results_ner_gpt-3.5-turbo-1106.json"


def shared_dir() -> Path:
    """The folder of measured data: `HIPPORAG_SHARED`, or `../shared` from the checkout."""
    default = Path(__file__).resolve().parents[2].parent / "shared"
    return Path(os.environ.get("HIPPORAG_SHARED", default))


@dataclass(frozen=True, eq=False)
class GoldenVectors:
    """Unit vectors of all-MiniLM-L6-v2 for every text that the reference embedded on musique_train."""

    texts: tuple[str, ...]
    rows: Float32[Tensor, "texts dim"]

    @staticmethod
    def load(shared: Path | None = None) -> "GoldenVectors":
        """Phrases, facts, passages and questions. Raises `DatasetError` if the files are not there."""
        folder = (shared or shared_dir()) / "golden"
        if not (folder / "embeddings.safetensors").is_file():
            raise DatasetError(
                f"there are no golden vectors in {folder}; set HIPPORAG_SHARED to the folder that holds golden/"
            )
        from safetensors.torch import load_file
        from torch import cat

        tables = load_file(folder / "embeddings.safetensors")
        musique = folder.parent / "data" / "musique_train"
        nodes = json.loads((folder / "nodes.json").read_text("utf-8"))
        facts = json.loads((folder / "facts.json").read_text("utf-8"))["facts"]
        corpus = json.loads((musique / "corpus.json").read_text("utf-8"))
        questions = json.loads((musique / "questions.json").read_text("utf-8"))
        texts = (
            *(name for kind, name in nodes if kind == "e"),
            *facts,
            *(f"{row['title']}\n{row['text']}" for row in corpus),
            *(row["question"] for row in questions),
        )
        rows = cat([tables[name] for name in ("phrases", "facts", "passages", "questions")])
        return GoldenVectors(texts, rows)

    def preload(self, cache: EmbeddingCache, identity: EmbedderIdentity) -> None:
        """Put every vector into `cache`, as `identity` without an instruction would have made it."""
        cache.put(identity, "", self.texts, self.rows)
