"""Devices of this machine: found, held for one program at a time, configured."""
