"""Retrievers: questions → ranked passages. All batched, all returning the same record."""
