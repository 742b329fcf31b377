"""A page of another node on this machine's loopback: browsers know no certificate of a slice."""

import asyncio
import ssl
import threading
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

from flowos.model import LaunchFailed

_CHUNK_BYTES = 1 << 16
_REACH_SECONDS, _TICK_SECONDS = 30.0, 0.05


class Relay:
    """Serves, until `close`, what the page at `url` serves with TLS. url: that of ours instead.

    Raises LaunchFailed if there is no way to it.
    """

    def __init__(self, url: str, context: ssl.SSLContext) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._context = parts.hostname or "", parts.port or 443, context
        self._begun = threading.Event()
        self._complaint = ""
        self._own = 0
        self._thread = threading.Thread(target=self._run, name="flowos-relay", daemon=True)
        self._thread.start()
        self._begun.wait()
        if self._complaint:
            raise LaunchFailed(f"no way to {self._host} port {self._port}: {self._complaint}")
        self.url = urlunsplit(parts._replace(scheme="http", netloc=f"127.0.0.1:{self._own}"))

    def close(self) -> None:
        """Ends what goes through it. Twice is once."""
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except (OSError, TimeoutError) as error:
            self._complaint = str(error) or self._complaint or "it does not answer"
        finally:
            self._begun.set()

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        _, there = await asyncio.wait_for(self._reached(), _REACH_SECONDS)
        there.close()
        self._complaint = ""
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self._own = server.sockets[0].getsockname()[1]
        self._begun.set()
        await self._over.wait()
        server.close()

    async def _reached(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Jupyter names its page a moment before it listens."""
        while True:
            try:
                return await self._opened()
            except ConnectionRefusedError as error:
                self._complaint = str(error)
                await asyncio.sleep(_TICK_SECONDS)

    async def _opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self._host, self._port, ssl=self._context)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_there, to_there = await self._opened()
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(_copy(reader, to_there))
                    both.create_task(_copy(from_there, writer))
            finally:
                to_there.close()
        except* (OSError, _ClosedError):
            pass
        finally:
            writer.close()


class _ClosedError(Exception):
    """One end is; HTTP does without connections that are closed by half."""


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    raise _ClosedError
