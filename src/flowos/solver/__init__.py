"""The Python face of the solver."""
