"""One node of a run with peers, a process by itself; prints a line of JSON per epoch.

    python peer_node.py DATA CACHE CACHED_SAMPLES RANK WORLD EPOCHS SECRET HOST:PORT...

After each epoch it waits for a line of standard input, so that all nodes go through the epochs
together.
"""

import json
import sys

from flowos._native import Cache, Catalog, Feeder, Files, PeerSettings

SLOT_BYTES = 4096


def send(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(data: str, folder: str, kept: int, rank: int, epochs: int, secret: str) -> None:
    nodes = sys.argv[8:]
    catalog = Catalog.list_folder(data)
    cache = Cache(folder, 1, len(catalog), kept * SLOT_BYTES, 0, kept * SLOT_BYTES)
    peers = PeerSettings(nodes, rank, secret, timeout_seconds=60.0) if secret else None
    feeder = Feeder(
        catalog,
        Files(data, catalog),
        cache,
        None,
        batch_size=8,
        rank=rank,
        world_size=len(nodes),
        memory_bytes=1,
        peers=peers,
    )
    send({"ready": True})
    for epoch in range(epochs):
        sys.stdin.readline()
        feeder.seek(epoch, 0)
        seen = []
        while batch := feeder.next():
            for sample, start, length in zip(
                batch.samples, batch.offsets, batch.lengths, strict=True
            ):
                bytes_ = batch.data[start : start + length].tobytes()
                name = catalog.name(int(sample))
                assert bytes_.startswith(name.encode()), f"{name} has bytes of another one"
                seen.append(int(sample))
        stats = feeder.stats()
        told: dict[str, object] = {
            "seen": seen,
            "source": stats.source_samples,
            "cache": stats.cache_samples,
            "peers": stats.peer_samples,
            "complaint": stats.complaint,
        }
        send(told)
    sys.stdin.readline()
    feeder.close()


if __name__ == "__main__":
    main(
        sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[6]), sys.argv[7]
    )
