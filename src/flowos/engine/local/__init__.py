"""Our own engine: this process, threads and node-local workers."""
