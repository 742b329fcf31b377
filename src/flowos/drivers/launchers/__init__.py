"""Drivers that start ranks."""
