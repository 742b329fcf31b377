"""Drivers of resource managers."""
