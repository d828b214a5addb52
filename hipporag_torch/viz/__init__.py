"""Pictures of an explanation: a PNG and a page. Both draw the same layout."""
