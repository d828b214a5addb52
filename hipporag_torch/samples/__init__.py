"""The project's own sample corpus: invented passages about the Sallow Isles, questions, and triples."""

from importlib.resources import files
from pathlib import Path


def folder() -> Path:
    """The folder of corpus.json, questions.json and triples.json."""
    return Path(str(files("hipporag_torch.samples")))
