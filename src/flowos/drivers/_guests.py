"""What a guest is: another framework's own cluster, on the nodes of a slice."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Protocol

from flowos._dataclasses import dataclass
from flowos.model import Argv, Pairs

ADDRESS, FOLDER, PORT = "{flowos-address}", "{flowos-folder}", "{flowos-port}"
"""In words and variables of a program: its node's address, a folder of its own there, and, chosen
anew each time, a free port."""


@dataclass(frozen=True, kw_only=True)
class GuestPlan:
    """What all programs of a guest know.

    python: what runs them. cores, memory_bytes: of each node. head_cores: how many of them the head
    has for work. files: the folder of `GuestDriver.files`, which all nodes see. pem: a certificate
    with its key, of this guest alone. ours: the address of this machine, as the nodes see it. here:
    the nodes are this machine. cwd: the folder of the person. logs: its clients are shown what its
    workers print.
    """

    python: str
    cores: int
    memory_bytes: int
    head_cores: int
    secret: str
    files: PurePath
    pem: PurePath
    ours: str
    here: bool
    cwd: PurePath
    logs: bool = True


@dataclass(frozen=True, kw_only=True)
class GuestWords:
    """One of its programs. Words may hold ADDRESS, FOLDER and PORT; secrets stand in variables
    alone."""

    argv: Argv
    variables: Pairs = ()


@dataclass(frozen=True, kw_only=True)
class Connection:
    """What a client needs: address, keywords of its call, variables of its process."""

    address: str
    options: Mapping[str, Any]
    variables: Pairs = ()


class GuestDriver(Protocol):
    """Builds command lines, and reads what their programs print, a line at a time.

    modules: of Python, without which it cannot start; remedy: the command that installs them.
    complaints: what it prints where something else is missing, and the command that installs that.
    hasty: what it prints when it has not waited long enough for itself, and may be started again.
    certified: it needs the certificate of its plan. head_is_ours: its head runs where the client
    does, not on the first node.
    """

    @property
    def name(self) -> str: ...
    @property
    def modules(self) -> tuple[str, ...]: ...
    @property
    def remedy(self) -> str: ...
    @property
    def complaints(self) -> Pairs: ...
    @property
    def hasty(self) -> str: ...
    @property
    def certified(self) -> bool: ...
    @property
    def head_is_ours(self) -> bool: ...

    def files(self, plan: GuestPlan) -> Mapping[str, str]:
        """Name -> content of what its programs read."""
        ...

    def head(self, plan: GuestPlan) -> GuestWords: ...

    def worker(self, plan: GuestPlan, address: str) -> GuestWords | None:
        """What joins the head at this address; None if there is nothing to be joined."""
        ...

    def read_address(self, line: str) -> str:
        """The address of a head that answers; "" if the line does not say it."""
        ...

    def has_joined(self, line: str) -> bool:
        """Whether a worker says so in this line."""
        ...

    def connection(self, plan: GuestPlan, address: str) -> Connection: ...
