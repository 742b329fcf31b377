"""Results of tasks kept by content: digests of code and inputs, a journal, lanes that use both."""
