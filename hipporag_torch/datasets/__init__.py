"""Question sets with their corpora, read into `types.Dataset`."""

from hipporag_torch.datasets.hub import HubDataset
from hipporag_torch.datasets.local import LocalDataset
from hipporag_torch.datasets.source import DatasetSource, Presence

__all__ = ["DatasetSource", "HubDataset", "LocalDataset", "Presence"]
