"""Pictures: explanations as a PNG and a page of one layout; runs and graphs as charts."""
