"""What nodes that a resource manager holds have in common, whichever it is."""
