"""Starting a process, whatever its runtime and launcher, and seeing it to its end."""
