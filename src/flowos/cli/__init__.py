"""Reads arguments, prints. The only room that prints."""
