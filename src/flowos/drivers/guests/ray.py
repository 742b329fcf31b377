"""Ray: a head on the client's machine, as clients join a cluster by a raylet of their own."""

import re
from collections.abc import Mapping

from flowos._dataclasses import dataclass
from flowos.drivers._guests import ADDRESS, FOLDER, PORT, Connection, GuestPlan, GuestWords
from flowos.model import Argv, Pairs

_HEAD = re.compile(r"--address='([^']+)'")
_ANY_PORT = (
    *("--node-manager-port=0", "--object-manager-port=0"),
    *("--min-worker-port=0", "--max-worker-port=0"),
    *(f"--metrics-export-port={PORT}", f"--dashboard-agent-listen-port={PORT}"),
    *(f"--dashboard-agent-grpc-port={PORT}", f"--runtime-env-agent-port={PORT}"),
)
_PATIENT = """\
import sys, time, types
import ray._private.node as node
import ray._private.services as services
import ray._raylet as raylet
from ray.scripts.scripts import main

begin, ports = services.start_ray_process, []
if hasattr(raylet, "DASHBOARD_AGENT_LISTEN_PORT_NAME"):
    ports = [word for word in sys.argv if word.startswith("--dashboard-agent-listen-port=")]
services.start_ray_process = lambda command, kind, *rest, **more: begin(
    command + ports if kind == "raylet" else command, kind, *rest, **more
)
slow = {**vars(time), "monotonic": lambda: time.monotonic() / 4}
node.time = types.SimpleNamespace(**slow)
main()
"""
"""`ray start` on a busy machine. A raylet that is not given the port of its agent waits 15 s for it
and aborts (ray-project/ray#65983): it is given it. `ray start` waits 30 s for its node and has no
option for it: by a clock that runs slower it waits for 2 minutes."""


@dataclass(frozen=True)
class Ray:
    """See `GuestDriver`. It opens its own folder to all users, so that lies in ours."""

    name: str = "ray"
    modules: tuple[str, ...] = ("ray",)
    remedy: str = "pip install ray"
    complaints: Pairs = ()
    hasty: str = "timed out during startup"
    certified: bool = False
    head_is_ours: bool = True

    def files(self, plan: GuestPlan) -> Mapping[str, str]:
        return {"ray-token": plan.secret}

    def head(self, plan: GuestPlan) -> GuestWords:
        own = ("--head", "--port=0", "--include-dashboard=false", "--no-monitor")
        return GuestWords(
            argv=(*_start(plan), *own, f"--num-cpus={plan.head_cores}"), variables=_token(plan)
        )

    def worker(self, plan: GuestPlan, address: str) -> GuestWords:
        own = (f"--address={address}", f"--num-cpus={plan.cores}")
        return GuestWords(argv=(*_start(plan), *own), variables=_token(plan))

    def read_address(self, line: str) -> str:
        found = _HEAD.search(line)
        return found[1] if found else ""

    def has_joined(self, line: str) -> bool:
        return "Ray runtime started" in line

    def connection(self, plan: GuestPlan, address: str) -> Connection:
        return Connection(address=address, options={}, variables=_token(plan))


def _start(plan: GuestPlan) -> Argv:
    node = (f"--node-ip-address={ADDRESS}", f"--temp-dir={FOLDER}/r", *_ANY_PORT)
    words = ("-c", _PATIENT, "start", "--block", "--disable-usage-stats")
    quiet = ("--include-log-monitor=false",) * (not plan.logs)  # a process less on each node
    return (plan.python, *words, "--log-color=false", *quiet, *node)


def _token(plan: GuestPlan) -> Pairs:
    return (("RAY_AUTH_MODE", "token"), ("RAY_AUTH_TOKEN_PATH", str(plan.files / "ray-token")))
