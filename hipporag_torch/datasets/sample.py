"""The sample corpus that comes with the package, as a data set."""

from pathlib import Path

from hipporag_torch import samples
from hipporag_torch.datasets.local import LocalDataset


def sample_folder() -> Path:
    """The folder that holds the sample's corpus.json, questions.json and triples.json."""
    return samples.folder()


def sample_dataset(*, limit: int | None = None) -> LocalDataset:
    """The sample's passages and questions.

    limit: use the first so many questions, at least 1; None uses all. The corpus is always whole.
    """
    return LocalDataset(path=sample_folder(), shape="paragraphs", name="sample", limit=limit)
