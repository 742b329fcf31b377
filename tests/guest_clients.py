"""Clients of guests, each a process of its own: what it needs is in its arguments and variables.

`python guest_clients.py NAME ADDRESS OPTIONS` prints what its guest answered, as JSON.
"""

import asyncio
import json
import os
import sys
import urllib.request
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

PATIENCE_SECONDS = 60.0
WORDS = "to be or not to be"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CELL = "import os; print(sum(range(100)), os.environ.get('SLURMD_NODENAME', 'here'))"


def node() -> str:
    return os.environ.get("SLURMD_NODENAME", "here")


def dask(address: str, options: dict[str, Any]) -> object:
    """A sum, and on which nodes there are workers."""
    from distributed import Client

    with Client(address, **options) as client:
        parts = client.map(sum, [range(i) for i in range(20)])
        return client.submit(sum, parts).result(), sorted(client.run(node).values())


def dask_in_an_image(address: str, options: dict[str, Any]) -> object:
    """A sum, and which nodes have workers, each with whether these are in the image of the test."""
    from distributed import Client

    with Client(address, **options) as client:
        parts = client.map(sum, [range(i) for i in range(20)])
        places = client.run(lambda: (node(), os.path.exists("/scratch")))  # noqa: PTH110
        return client.submit(sum, parts).result(), sorted(places.values())


def ray(address: str, options: dict[str, Any]) -> object:
    """A sum of tasks, and where they ran."""
    import ray

    ray.init(address, **options, log_to_driver=False)
    square = ray.remote(lambda x: (x * x, os.environ.get("SLURMD_NODENAME", "here")))
    found = ray.get([square.remote(i) for i in range(5)])
    ray.shutdown()
    return sum(x for x, _ in found), sorted({where for _, where in found})


def spark(address: str, options: dict[str, Any]) -> object:  # noqa: ARG001
    """A word count. These Javas end before code that is compiled well would pay."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_TOOL_OPTIONS"] = QUICK_JAVA
    builder = SparkSession.builder.master(address)
    session = builder.config("spark.executor.extraJavaOptions", QUICK_JAVA).getOrCreate()
    words = session.sparkContext.parallelize(WORDS.split(), 2)
    counted = words.map(lambda word: (word, 1)).reduceByKey(lambda a, b: a + b).collect()
    where = session.sparkContext.parallelize([0], 1).map(lambda _: node()).collect()
    session.stop()
    return sorted(counted), where


def jupyter(address: str, options: dict[str, Any]) -> object:  # noqa: ARG001
    """A notebook is written, read and executed; what its cells print."""
    api = Api(address)
    source = {"cell_type": "code", "source": CELL, "metadata": {}, "outputs": []}
    content = {"cells": [source], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    name = f"api/contents/flowos-test-{uuid.uuid4().hex[:8]}.ipynb"
    api.ask("PUT", name, {"type": "notebook", "content": content})
    try:
        cells = api.ask("GET", name)["content"]["cells"]
    finally:
        api.ask("DELETE", name)
    kernel = api.ask("POST", "api/kernels", {"name": "python3"})["id"]
    said = [asyncio.run(api.execute(kernel, cell["source"])) for cell in cells]
    api.ask("DELETE", f"api/kernels/{kernel}")
    return said


class Api:
    """Jupyter's, at the URL that a person gets."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.place, self.token = parts.netloc, parts.query.removeprefix("token=")

    def ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            f"http://{self.place}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return json.loads(answer.read() or b"null")

    async def execute(self, kernel: str, source: str) -> str:
        """What it prints, up to its end."""
        from tornado.websocket import websocket_connect

        url = f"ws://{self.place}/api/kernels/{kernel}/channels?token={self.token}"
        line = await websocket_connect(url)
        asked = {
            "header": {"msg_id": "1", "msg_type": "execute_request", "version": "5.3"},
            "parent_header": {},
            "metadata": {},
            "content": {"code": source, "silent": False, "store_history": True},
            "channel": "shell",
        }
        await line.write_message(json.dumps(asked))
        printed = ""
        while True:
            message = json.loads(await asyncio.wait_for(line.read_message(), PATIENCE_SECONDS))
            if message["parent_header"].get("msg_id") != "1":
                continue
            if message["msg_type"] == "stream":
                printed += message["content"]["text"]
            if message["content"].get("execution_state") == "idle":
                line.close()
                return printed


CLIENTS: dict[str, Callable[[str, dict[str, Any]], object]] = {
    "dask": dask,
    "dask in an image": dask_in_an_image,
    "jupyter": jupyter,
    "ray": ray,
    "spark": spark,
}

if __name__ == "__main__":
    answer = CLIENTS[sys.argv[1]](sys.argv[2], json.loads(sys.argv[3]))
    sys.stdout.write(f"\nanswer {json.dumps(answer)}\n")
