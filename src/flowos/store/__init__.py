"""Runs and samples in a database."""
