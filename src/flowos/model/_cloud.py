"""Machines of a cloud: the settings of `[cloud.NAME]`, and what is known of a machine."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from flowos._dataclasses import dataclass, field

CloudDriver = Literal["ec2", "fake"]
RefusalKind = Literal[
    "quota", "capacity", "credentials", "request", "busy", "unreachable", "unknown"
]
ActionKind = Literal["create", "end", "keep", "refuse", "back"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_TAG = re.compile(r"[^=]+=.*")
_ANSWER = re.compile(r"(?:create|end|list): (?:hang|wait \d+(?:\.\d+)?|.*\S)")
_ENDPOINT = re.compile(r"https?://[\w.-]+(?::(?P<port>\d{1,5}))?/?")
_MAX_PORT = 65535
_PATHS = ("user_data", "credentials", "log", "folder")
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "ec2": ("region", "image", "size"),
    "fake": ("folder", "user_data"),
}
_MAX_SECONDS = 1e9


def _doc(sentence: str) -> dict[str, Any]:
    return {"doc": sentence}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """Where the machines of Slurm's cloud nodes come from. Raises ValueError for what cannot be."""

    USUAL_RETRY_SECONDS: ClassVar[float] = 300.0

    name: str
    driver: CloudDriver = field(
        default="ec2",
        metadata=_doc(
            "what makes machines: `ec2`, Amazon's and what speaks like it, through Apache "
            "Libcloud; `fake`, processes of this machine, for tests"
        ),
    )
    nodes: str = field(
        default="",
        metadata=_doc("which nodes of Slurm, as in `c[1-8],gpu[1-2]`; all if it is the only cloud"),
    )
    cluster: str = field(
        default="",
        metadata=_doc(
            "name of the cluster in the tags of its machines, one for each cluster of an account; "
            "Slurm's ClusterName by default"
        ),
    )
    region: str = field(default="", metadata=_doc("region, as in `eu-central-1`"))
    image: str = field(default="", metadata=_doc("id of the image that machines start from"))
    size: str = field(default="", metadata=_doc("size of a machine; see `flowos cloud sizes`"))
    subnet: str = field(default="", metadata=_doc("id of the subnet; the account's default one"))
    security_groups: tuple[str, ...] = field(
        default=(), metadata=_doc("ids of security groups; they need a subnet")
    )
    ssh_key: str = field(default="", metadata=_doc("name of the key pair that may log in"))
    spot: bool = field(
        default=False, metadata=_doc("cheaper machines that the cloud may take back at any time")
    )
    tags: tuple[str, ...] = field(
        default=(), metadata=_doc('more tags of each machine, as in "project=physics"')
    )
    user_data: str = field(
        default="",
        metadata=_doc(
            "path of the script that a machine runs when it starts; @NODE@, @CLUSTER@ and @NONCE@ "
            "in it are replaced. It has to start `slurmd -N @NODE@`"
        ),
    )
    credentials: str = field(
        default="",
        metadata=_doc(
            "path of a TOML file with `key`, `secret` and, if there is one, `token`, which only "
            "its owner may read; AWS_ACCESS_KEY_ID and so on by default"
        ),
    )
    endpoint: str = field(
        default="", metadata=_doc("URL of the cloud; that of the region by default")
    )
    retry_seconds: float = field(
        default=USUAL_RETRY_SECONDS,
        metadata=_doc("how long a node is drained that could not be made, before it is tried anew"),
    )
    answer_seconds: float = field(
        default=60.0, metadata=_doc("how long the cloud is asked before it counts as gone")
    )
    log: str = field(
        default="",
        metadata=_doc(
            "file of what was done in the background, a line of JSON each, that of the first cloud "
            "if nodes are of several; in /var/tmp by default"
        ),
    )
    folder: str = field(default="", metadata=_doc("of a fake cloud: where its machines are kept"))
    answers: tuple[str, ...] = field(
        default=(),
        metadata=_doc(
            'of a fake cloud: what it answers, as in "create: VcpuLimitExceeded: no", '
            '"end: hang", "list: wait 2"'
        ),
    )

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"name: {self.name!r}: expected letters, digits, _.- (not first)")
        for name in _NEEDS[self.driver]:
            if not getattr(self, name):
                raise ValueError(f"{name}: it is empty; driver {self.driver!r} needs it")
        for name in ("nodes", "cluster", "region", "image", "size", "subnet", "ssh_key", *_PATHS):
            _check_text(name, getattr(self, name))
        for name in ("retry_seconds", "answer_seconds"):
            if not 0 < getattr(self, name) < _MAX_SECONDS:
                raise ValueError(f"{name}: {getattr(self, name)} is not above 0, and below 1e9")
        self._check_lists()

    def _check_lists(self) -> None:
        for tag in self.tags:
            if not _TAG.fullmatch(tag) or tag.startswith("flowos-"):
                raise ValueError(f"tags: {tag!r}: expected NAME=VALUE, NAME without `flowos-`")
        for answer in self.answers:
            if self.driver != "fake":
                raise ValueError("answers: only a fake cloud has them")
            if not _ANSWER.fullmatch(answer):
                raise ValueError(f"answers: {answer!r}: expected create, end or list, `: ` and it")
        if self.security_groups and not self.subnet:
            raise ValueError("security_groups: they need a subnet")
        if self.endpoint and not _is_endpoint(self.endpoint):
            raise ValueError(f"endpoint: {self.endpoint!r}: expected http(s)://HOST[:1-65535]")


def _is_endpoint(url: str) -> bool:
    found = _ENDPOINT.fullmatch(url)
    return found is not None and 0 < int(found["port"] or 1) <= _MAX_PORT


def _check_text(name: str, value: str) -> None:
    if not value.isprintable() or value != value.strip():
        raise ValueError(f"{name}: {value!r}: expected printable characters, no space around")
    if name in _PATHS and value and not value.startswith("/"):
        raise ValueError(f"{name}: {value!r}: expected an absolute path")


@dataclass(frozen=True, slots=True, kw_only=True)
class VmOrder:
    """A machine that is to be there for a node. nonce: of the request; later ones sort behind."""

    cluster: str
    node: str
    nonce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Vm:
    """A machine that the cloud has, with its tags. created: seconds since 1970."""

    id: str
    node: str
    nonce: str
    created: float
    address: str = ""


@dataclass(frozen=True, slots=True)
class CloudRefusal:
    """Why a cloud did not do what it was asked for: its own words, and what they come to."""

    kind: RefusalKind
    text: str

    def __str__(self) -> str:
        return self.text if self.kind in ("unknown", "unreachable") else f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudAction:
    """What was done, or would be. at: when, in UTC. seconds: how long it took.

    create, end: a machine, of a node. keep: it could not be ended. refuse: a node gets no machine
    now. back: a node that was refused is given back to Slurm.
    """

    what: ActionKind
    node: str
    vm: str = ""
    why: str = ""
    seconds: float | None = None
    at: str = ""


def tag_values(tags: Iterable[str]) -> dict[str, str]:
    """Of "NAME=VALUE" each."""
    pairs = (tag.partition("=") for tag in tags)
    return {name: value for name, _, value in pairs}
