"""The same history gives the same bytes, whatever Python's hash seed is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import files_of

HISTORY = """
import sys
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.graph_construction import GraphOptions
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.types import Document, Extraction, Sentence, Triple

class Words:
    producer, calls_per_passage = "words", 1
    failing = {"Oslo burns tonight again."}

    def extract(self, passages, progress=None):
        return [self.extraction(p.text.rstrip(".").split()) for p in passages]

    def extraction(self, words):
        if " ".join(words) + "." in self.failing:
            return Extraction(status="failed", reason="no reply", reply="raw", producer="words")
        pairs = [Triple(a, "beside", b) for a, b in zip(words, words[1:])]
        told = (Sentence(" ".join(words)), tuple(words[::3]))
        return Extraction(tuple(words), tuple(pairs), sentences=(told,), producer="words")

texts = [f"Harbour {n} lies beside harbours {n + 1} of Oslo number{n % 3}." for n in range(12)]
documents = [Document(t, f"{n % 4}.md", {"title": t[:9], "n": n}) for n, t in enumerate(texts)]
embedder, other = HashingEmbedder(dim=32), HashingEmbedder(dim=16)
graph = GraphOptions(synonym_threshold=0.5, synonym_cap=3)
options = {"embedder": embedder, "extractor": Words(), "graph": graph, "vectors": sys.argv[2]}
with HippoRAG.open(sys.argv[1], **options) as memory:
    memory.add([*documents[:7], "Oslo burns tonight again."])
    memory.add(documents[5:])
    memory.remove(source_ids=["2.md", "nobody"], texts=[texts[0]])
    memory.update("1.md", [texts[1], "Another ship came."])
    try:
        memory.add(["A ship is staged.", "Oslo burns tonight again."], on_error="fail")
    except Exception:
        pass
    memory.reextract()
    memory.reembed(other)
    memory.rebuild_graph(GraphOptions(synonym_threshold=0.3, mention_weight=0.25))
    memory.compact()
    memory.remove(texts=[texts[5]])
    for ranking in memory.retrieve(["Which harbour burns?", "number1"], top_k=4, trace=True):
        print(ranking)
"""


def run(directory: Path, seed: str) -> tuple[str, dict[str, bytes]]:
    done = subprocess.run(
        [sys.executable, "-c", HISTORY, str(directory / "index"), "float16"],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, files_of(directory / "index")


@pytest.mark.slow
def test_two_hash_seeds_give_the_same_bytes_and_rankings(tmp_path: Path) -> None:
    (said, files), (said_again, files_again) = run(tmp_path / "a", "1"), run(tmp_path / "b", "2")
    assert said == said_again
    assert list(files) == list(files_again)
    assert [name for name in files if files[name] != files_again[name]] == []
    # The records, the arrays of one embedder, and the rows and keys of two.
    assert len(files) == 1 + 1 + 2 * 3 * 2
