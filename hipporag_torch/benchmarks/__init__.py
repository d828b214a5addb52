"""Measurements of speed and memory, beside a peer where there is one. Nothing passes or fails here."""
