"""The durable form of an index: SQLite records, append-only vectors, one file of arrays per generation."""
