"""Pure decisions: what to run, when to stop, what to believe. No clock, no files."""
