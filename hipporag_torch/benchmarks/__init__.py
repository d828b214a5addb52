"""Measurements of speed and memory, each beside a peer where there is one. Not tests: nothing passes or fails."""
