"""Tools that fetch, build, read and squash images: command lines, and readers of their answers."""
