"""Texts → unit vectors. Every embedder fits the `Embedder` protocol; conf/embedder names those we ship."""
