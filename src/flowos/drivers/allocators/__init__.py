"""Ways to hold nodes."""
