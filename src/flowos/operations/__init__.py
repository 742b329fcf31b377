"""One conductor per file: the sequence of a whole command."""
