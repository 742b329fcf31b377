"""Tools that fetch, build, read and squash images: command lines, and parsers of their output."""
