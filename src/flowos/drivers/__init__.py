"""Runtimes, launchers, allocators: build command lines, read answers; run nothing."""
