"""Slices on a Ray cluster."""
