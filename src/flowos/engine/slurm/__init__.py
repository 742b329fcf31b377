"""Slices held by Slurm."""
