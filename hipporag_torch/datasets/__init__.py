"""Question sets with their corpora, read into `types.Dataset`."""

from hipporag_torch.datasets.local import LocalDataset

__all__ = ["LocalDataset"]
