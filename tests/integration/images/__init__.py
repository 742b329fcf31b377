"""`flowos image`, with real archives, tools and files."""
