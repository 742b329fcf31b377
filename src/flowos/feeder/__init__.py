"""The Python face of the feed."""
