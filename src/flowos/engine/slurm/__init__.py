"""Nodes of a Slurm cluster: as a pool, and held by keepers."""
