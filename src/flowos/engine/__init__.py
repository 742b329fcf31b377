"""The only room with processes, sockets, sleep and clock."""
