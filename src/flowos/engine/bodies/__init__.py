"""Bodies of tasks in other languages: made where they run, and called with arrays."""
