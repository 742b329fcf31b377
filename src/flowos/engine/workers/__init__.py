"""Worker processes: lanes that run Python tasks in other processes of a node."""
