"""Nodes that come and go."""
