"""What a link and TLS by themselves allow, for benchmarks/slices.py: no message, no task, no value.

`python benchmarks/_link_limits.py serve ADDRESS FOLDER` prints its port, and answers until the
other end leaves; `python benchmarks/_link_limits.py ask ADDRESS PORT FOLDER` prints one JSON
object. Python's own sockets and `SSLSocket`, both ends in the folder's certificate. A round trip is
of 64 bytes, and both ends look for it without sleeping.
"""

import json
import socket
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from flowos.engine.workers._listeners import certificate
from flowos.engine.workers.stream_worker import context_of

SMALL = b"x" * 64
TRIPS, TURNS = 500, 20
LARGE_BYTES, CHUNK_BYTES = 1 << 28, 1 << 20
Connected = socket.socket | ssl.SSLSocket


def awake(end: Connected) -> Callable[[], bytes]:
    """Reads what comes, and does not sleep until it does; b"" at the end."""
    end.setblocking(False)

    def read() -> bytes:
        while True:
            try:
                return end.recv(CHUNK_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError):
                continue

    return read


def answer(end: Connected) -> None:
    read = awake(end)
    for _ in range(TRIPS * TURNS):
        end.sendall(read())


def round_trip_seconds(end: Connected) -> float:
    """The median of turns of many."""
    read, taken = awake(end), []
    for _ in range(TURNS):
        began = time.perf_counter()
        for _ in range(TRIPS):
            end.sendall(SMALL)
            read()
        taken.append((time.perf_counter() - began) / TRIPS)
    return median(taken)


def take(end: Connected) -> None:
    end.setblocking(True)
    left, memory = LARGE_BYTES, memoryview(bytearray(CHUNK_BYTES))
    while left:
        left -= end.recv_into(memory, min(left, CHUNK_BYTES))
    end.sendall(SMALL)


def send_mb_per_second(end: Connected) -> float:
    end.setblocking(True)
    chunk, began = memoryview(bytearray(CHUNK_BYTES)), time.perf_counter()
    for _ in range(LARGE_BYTES // CHUNK_BYTES):
        end.sendall(chunk)
    end.recv(len(SMALL))
    return LARGE_BYTES / 1e6 / (time.perf_counter() - began)


def serve(address: str, folder: str) -> None:
    pem = str(certificate(Path(folder)))
    with socket.create_server((address, 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        for tls in (False, True):
            end: Connected = listener.accept()[0]
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls:
                end = context_of(pem, server=True).wrap_socket(end, server_side=True)
            with end:
                answer(end)
                take(end)


def ask(address: str, port: str, folder: str) -> None:
    pem, found = str(certificate(Path(folder))), {}
    for name in ("tcp", "tls"):
        end: Connected = socket.create_connection((address, int(port)))
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if name == "tls":
            end = context_of(pem, server=False).wrap_socket(end)
        with end:
            found[f"{name}_round_trip_seconds"] = round_trip_seconds(end)
            found[f"{name}_mb_per_second"] = send_mb_per_second(end)
    print(json.dumps(found))


if __name__ == "__main__":
    doing, *words = sys.argv[1:]
    serve(*words) if doing == "serve" else ask(*words)
