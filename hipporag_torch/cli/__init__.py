"""The command line for people: hipporag-torch ask, index-folder, stats, sources, remove, explain."""

from hipporag_torch.cli.program import main

__all__ = ["main"]
