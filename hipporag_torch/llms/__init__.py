"""Chat models: what answers prompts, and what is put around it."""
