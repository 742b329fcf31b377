"""One command per file: the sequence of its steps."""
