"""The reference implementation's vectors of its own texts: measuring need not embed 35,000 strings."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.datasets.local import LocalDataset
from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.errors import ConfigError, DatasetError, InputError
from hipporag_torch.extractors.stored import StoredExtractor
from hipporag_torch.graph_construction import ReferenceGraphOptions
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import EmbedderIdentity, Progress, no_progress
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Dataset, Role

EXTRACTIONS = "openie_results_ner_gpt-3.5-turbo-1106.json"
REFERENCE_TEXT = TextOptions(normalisation="reference", fact_template="repr", content_id="md5")
REFERENCE_GRAPH = ReferenceGraphOptions()


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
                f"there are no golden vectors in {folder}; set HIPPORAG_SHARED to what holds golden/"
            )
        try:
            from safetensors.torch import load_file
        except ImportError as error:
            raise ConfigError(
                "golden vectors need safetensors: pip install 'hipporag-torch[peers]'"
            ) from error
        tables = load_file(folder / "embeddings.safetensors")
        dataset = golden_dataset(folder.parent)
        nodes = json.loads((folder / "nodes.json").read_text("utf-8"))
        texts = (
            *(name for kind, name in nodes if kind == "e"),
            *json.loads((folder / "facts.json").read_text("utf-8"))["facts"],
            *(document.text for document in dataset.documents),
            *(question.text for question in dataset.questions),
        )
        return GoldenVectors(
            texts, torch.cat([tables[name] for name in ("phrases", "facts", "passages", "questions")])
        )

    def preload(self, cache: EmbeddingCache, identity: EmbedderIdentity) -> None:
        """Put every vector into `cache`, as `identity` without an instruction would have made it."""
        cache.put(identity, "", self.texts, self.rows)


class GoldenEmbedder:
    """Looks every text up among the golden vectors; one that is not there is an `InputError`.

    new_names: whether a phrase may be unknown, as a name in a question may be that the index lacks: its
        vector is zero, so that it is near to nothing.
    """

    def __init__(self, vectors: GoldenVectors, *, new_names: bool = False) -> None:
        self._vectors = vectors
        self._new_names = new_names
        self._row = {text: row for row, text in enumerate(vectors.texts)}

    @property
    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity(
            name="golden", weights="", dim=self._vectors.rows.shape[1], pooling="mean", max_tokens=256
        )

    def instruction(self, role: Role) -> str:
        return ""

    def embed(
        self, texts: Sequence[str], role: Role, progress: Progress = no_progress
    ) -> Float32[Tensor, "texts dim"]:
        unknown = [text for text in texts if text not in self._row]
        if unknown and not (self._new_names and role == "phrase"):
            raise InputError(
                f"{len(unknown)} texts have no golden vector, such as {unknown[0]!r:.80}; golden vectors "
                "serve musique_train with text=reference alone"
            )
        rows = self._vectors.rows[[self._row.get(text, 0) for text in texts]]
        rows[[text not in self._row for text in texts]] = 0
        return rows

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [False] * len(texts)


def golden_dataset(shared: Path | None = None) -> Dataset:
    """musique_train: 1,890 passages, 100 questions."""
    return LocalDataset(path=(shared or shared_dir()) / "data" / "musique_train").load()


def golden_indexer(embedder: GoldenEmbedder, shared: Path | None = None) -> Indexer:
    """Builds the reference's graph from the reference's triples and vectors."""
    extractions = (shared or shared_dir()) / "data" / "musique_train" / EXTRACTIONS
    return Indexer(
        embedder=embedder,
        extractor=StoredExtractor(path=extractions),
        text=REFERENCE_TEXT,
        graph=REFERENCE_GRAPH,
    )
