"""obstore used directly: a fixed number of requests in flight, batches as they arrive."""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import obstore
from job import Job
from obstore.store import S3Store
from reading import ObjectReader

BATCHES_WAITING = 8


def open_batches(job: Job) -> Callable[[], Iterator[Any]]:
    where = ObjectReader(job)

    def start() -> Iterator[Any]:
        store = S3Store(where.bucket, client_options={"allow_http": True})
        ready: queue.Queue[list[Any]] = queue.Queue(BATCHES_WAITING)
        order = job.endless_order(len(where.keys))
        batch: list[Any] = []

        async def fetch() -> None:
            nonlocal batch
            while True:
                answer = await obstore.get_async(store, where.keys[next(order)])
                batch.append(await answer.bytes_async())
                if len(batch) == job.batch_size:
                    whole, batch = batch, []
                    await asyncio.to_thread(ready.put, whole)

        async def fetch_all() -> None:
            await asyncio.gather(*(fetch() for _ in range(job.workers)))

        threading.Thread(target=lambda: asyncio.run(fetch_all()), daemon=True).start()
        while True:
            yield ready.get()

    return start
