"""Ways to enter an environment."""
