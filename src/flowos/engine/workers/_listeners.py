"""Where a worker that starts connects to: a unix socket, or TCP with TLS from another node."""

import contextlib
import select
import socket
import threading
from pathlib import Path

from flowos.engine._ask import ask
from flowos.engine.workers import worker
from flowos.engine.workers.stream_worker import StreamChannel, TlsStream, context_of
from flowos.model import LaunchFailed

AnyChannel = worker.Channel | StreamChannel

_HANDSHAKE_SECONDS = 10.0
_OPENSSL_SECONDS = 30.0
_making = threading.Lock()


class Listener:
    """words: what a worker gets of it, on its command line."""

    words: tuple[str, ...]

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def accept(self, seconds: float) -> AnyChannel | None:
        """To the worker that comes within this time, if it does."""
        return self._meet(self._sock.accept()[0]) if self._poll.poll(seconds * 1000) else None

    def _meet(self, sock: socket.socket) -> AnyChannel | None:
        raise NotImplementedError

    def close(self) -> None:
        self._sock.close()


class UnixListener(Listener):
    """For a worker of this machine. Raises OSError if the socket cannot be made there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(_listening(sock, str(path)))
        self.words = (str(path),)

    def _meet(self, sock: socket.socket) -> AnyChannel:
        return worker.Channel(sock)

    def close(self) -> None:
        super().close()
        self._path.unlink(missing_ok=True)  # a worker that has ended took its folder along


class StreamListener(Listener):
    """For a worker of another node, which has the same certificate.

    address: of this machine, as that node sees it. pem: path of the certificate and its key.
    """

    def __init__(self, address: str, pem: Path) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = _listening(socket.socket(family), ("", 0))
        super().__init__(sock)
        self._context = context_of(str(pem), server=True)
        self.words = (address, str(sock.getsockname()[1]), str(pem))

    def _meet(self, sock: socket.socket) -> AnyChannel | None:
        """None of a peer without the certificate."""
        sock.settimeout(_HANDSHAKE_SECONDS)
        try:
            return StreamChannel(TlsStream(sock, self._context, server=True))
        except OSError:
            sock.close()
            return None


def _listening(sock: socket.socket, where: str | tuple[str, int]) -> socket.socket:
    try:
        sock.bind(where)
        sock.listen()
    except OSError:
        sock.close()
        raise
    return sock


def certificate(folder: Path) -> Path:
    """Of the slices of this folder, which is ours alone; made once, by OpenSSL.

    Raises LaunchFailed if it cannot be made.
    """
    pem = folder / "worker.pem"
    with _making:
        if not pem.exists():
            part = folder / ".worker.pem"
            part.touch(0o600)
            made = _made(part)
            if made:
                raise LaunchFailed(f"no certificate for workers on other nodes: {made}")
            part.rename(pem)
    return pem


def _made(pem: Path) -> str:
    """ "", or why not."""
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    words = ("openssl", "req", "-x509", *curve, "-days", "3650", "-subj", "/CN=flowos")
    with contextlib.suppress(FileNotFoundError):
        done = ask((*words, "-keyout", pem, "-out", "-"), seconds=_OPENSSL_SECONDS)
        if done.code == 0:
            with pem.open("ab") as file:
                file.write(done.stdout)
            return ""
        return f"openssl: {' '.join(done.says.splitlines()[-1:])}"
    return "there is no openssl here; install it"
