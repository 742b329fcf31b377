"""Lanes whose stages run in actors of a Ray that this process is connected to."""
