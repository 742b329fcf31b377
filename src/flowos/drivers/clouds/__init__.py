"""One file per kind of cloud: what it is asked with, and what it answers."""
