"""Clusters of other frameworks: one file each."""
