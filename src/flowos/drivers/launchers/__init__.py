"""Ways to start ranks."""
