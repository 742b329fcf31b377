"""What a file is, by the ending of its name: in small letters, with the dot."""

TAR, PARQUET = ".tar", ".parquet"

SHARDS = (TAR, PARQUET)
"""Of files that hold many samples each, and are read in pieces as they lie."""

PACKED_SHARDS = (".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tar.lz4")
"""Of those that would have to be unpacked first."""

SHARD_COMPANIONS = (".idx", ".json", ".md", ".txt")
"""Of files that a folder of shards may have, and that are none."""

BIN = ".bin"
ARRAYS = (".npy", BIN)
"""Of token arrays; the first says itself what is in it."""
