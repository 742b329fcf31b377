"""Nodes of a Grid Engine cluster: as a pool, and held by a keeper."""
