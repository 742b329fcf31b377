"""Tools that fetch, build, read and squash images: command lines, and parsers of their output."""

CONFIG = ".flowos/image.json"
"""File in which an image stores how to run it."""
