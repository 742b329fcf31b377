"""Devices that compute: found, acquired, configured, verified, reset and released by steps."""
