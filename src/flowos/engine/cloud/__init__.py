"""Machines of a cloud: made, found and ended; the only place that knows Libcloud."""
