"""Nodes of a Slurm cluster: as a pool."""
