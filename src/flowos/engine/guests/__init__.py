"""Clusters of other frameworks, on the nodes of a slice."""
