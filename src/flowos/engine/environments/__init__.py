"""Images and runtimes made ready to be launched in: tried, verified, unpacked, bound."""
