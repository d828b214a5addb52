"""Extractors: passages → entities and triples."""
