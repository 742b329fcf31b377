"""Samples and charts to text, Markdown, CSV, JSON, HTML. Opens no file."""
