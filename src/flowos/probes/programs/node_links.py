"""Nodes that run one program together: they find the first by a file that all of them see.

A process of each node is started by mpirun or srun, which say its number; no MPI is needed. The
first one listens on all its addresses and writes them into the file; the others connect to the one
that answers with the file's token, so that a file of an earlier run does no harm.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import struct
import time
from pathlib import Path
from typing import IO, Any

_NUMBERS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
_SIOCGIFADDR = 0x8915
_CONNECT_SECONDS, _AGAIN_SECONDS = 2.0, 0.05


class NodeLinksError(Exception):
    """The nodes do not come together, or one has ended."""


class NodeLinks:
    """This node is `number` of `count`. first: an address of the first one, as this one sees it.

    interface: by which it does; "" alone.
    """

    def __init__(self, number: int, count: int, links: list[socket.socket], first: str) -> None:
        self.number, self.count, self.first = number, count, first
        own = [link.getsockname()[0] for link in links[:1]]
        self.interface = interfaces().get(own[0], "") if own else ""
        self._links = links
        self._files: list[IO[str]] = [link.makefile("rw", encoding="utf-8") for link in links]

    def gathered(self, value: Any) -> list[Any]:
        """The values of all nodes, in their order. Raises NodeLinksError if one has ended."""
        if self.number > 0:
            _send(self._files[0], value)
            found: list[Any] = _received(self._files[0])
            return found
        values = [value, *map(_received, self._files)]
        for file in self._files:
            _send(file, values)
        return values

    def meeting_place(self) -> str:
        """A port of the first node that is free there, as torch.distributed reads it."""
        with socket.socket() as free:
            free.bind(("", 0))
            ports = self.gathered(free.getsockname()[1])
        return f"tcp://{self.first}:{ports[0]}"


ALONE = NodeLinks(0, 1, [], "127.0.0.1")


def linked(count: int, file: Path, patience_seconds: float = 300.0) -> NodeLinks:
    """This node and the others. Raises NodeLinksError if they do not come."""
    if count == 1:
        return ALONE
    number = int(next((os.environ[name] for name in _NUMBERS if name in os.environ), "0"))
    until = time.monotonic() + patience_seconds
    return _first(count, file, until) if number == 0 else _other(number, count, file, until)


def interfaces() -> dict[str, str]:
    """Of each IPv4 address of this machine its interface, the loopback's last."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            try:
                said = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError:  # it has none
                continue
            found[socket.inet_ntoa(said[20:24])] = name
    return dict(sorted(found.items(), key=lambda item: item[0].startswith("127.")))


def _first(count: int, file: Path, until: float) -> NodeLinks:
    token = secrets.token_hex(8)
    found: dict[int, socket.socket] = {}
    with socket.create_server(("", 0), backlog=count) as server:
        at = {"token": token, "port": server.getsockname()[1], "addresses": list(interfaces())}
        part = file.with_suffix(".part")
        part.write_text(json.dumps(at))
        part.replace(file)
        while len(found) < count - 1:
            server.settimeout(max(0.0, until - time.monotonic()) or 1e-3)
            try:
                link, _ = server.accept()
                number = _greeted(link, token)
            except OSError as why:
                if time.monotonic() < until:
                    continue
                missing = [n for n in range(1, count) if n not in found]
                raise NodeLinksError(f"nodes {missing} of {count} have not come: {why}") from None
            if number is not None:
                found[number] = link
    file.unlink()
    links = [found[number] for number in sorted(found)]
    return NodeLinks(0, count, _patient(links), links[0].getsockname()[0])


def _greeted(link: socket.socket, token: str) -> int | None:
    """The number of the node that has connected; None if it is none of ours."""
    link.settimeout(_CONNECT_SECONDS)
    try:
        said = link.recv(256).decode(errors="replace").split()
        if len(said) == 2 and said[0] == token:
            link.sendall(f"{token}\n".encode())
            if link.recv(1):  # it has not given up meanwhile
                return int(said[1])
    except OSError:
        pass
    link.close()
    return None


def _other(number: int, count: int, file: Path, until: float) -> NodeLinks:
    while time.monotonic() < until:
        try:
            at = json.loads(file.read_text())
        except (OSError, ValueError):  # it is not there yet
            at = {"addresses": [], "port": 0, "token": ""}
        for address in at["addresses"]:
            if link := _connected(number, address, at["port"], at["token"]):
                return NodeLinks(number, count, _patient([link]), address)
        time.sleep(_AGAIN_SECONDS)
    raise NodeLinksError(f"node {number} of {count} has not found the first one by {file}")


def _connected(number: int, address: str, port: int, token: str) -> socket.socket | None:
    try:
        link = socket.create_connection((address, port), _CONNECT_SECONDS)
        link.sendall(f"{token} {number}\n".encode())
        if link.recv(256).decode(errors="replace").strip() == token:
            link.sendall(b"\n")
            return link
        link.close()
    except OSError:
        pass
    return None


def _patient(links: list[socket.socket]) -> list[socket.socket]:
    for link in links:
        link.settimeout(None)
    return links


def _send(file: IO[str], value: Any) -> None:
    try:
        file.write(json.dumps(value) + "\n")
        file.flush()
    except OSError:
        raise NodeLinksError("another node has ended") from None


def _received(file: IO[str]) -> Any:
    try:
        line = file.readline()
    except OSError:
        line = ""
    if not line:
        raise NodeLinksError("another node has ended")
    return json.loads(line)
