"""Worker processes on this node."""
