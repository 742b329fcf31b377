"""Drivers that enter an environment."""
