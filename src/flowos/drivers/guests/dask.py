"""Dask: a scheduler on the first node, a worker on each, TLS between them and the client."""

import re
from collections.abc import Mapping

from flowos._dataclasses import dataclass
from flowos.drivers._guests import ADDRESS, FOLDER, Connection, GuestPlan, GuestWords
from flowos.model import Argv, Pairs

_SCHEDULER = re.compile(r"Scheduler at:\s+(tls://\S+)")


@dataclass(frozen=True)
class Dask:
    """See `GuestDriver`."""

    name: str = "dask"
    modules: tuple[str, ...] = ("distributed",)
    remedy: str = "pip install 'dask[distributed]'"
    complaints: Pairs = ()
    hasty: str = ""
    certified: bool = True
    head_is_ours: bool = False

    def files(self, plan: GuestPlan) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    def head(self, plan: GuestPlan) -> GuestWords:
        words = (plan.python, "-m", "distributed.cli.dask_scheduler", "--port", "0")
        return GuestWords(argv=(*words, *_common(plan)))

    def worker(self, plan: GuestPlan, address: str) -> GuestWords:
        words = (plan.python, "-m", "distributed.cli.dask_worker", address)
        shares = ("--nthreads", str(plan.cores), "--memory-limit", str(plan.memory_bytes))
        return GuestWords(argv=(*words, *_common(plan), *shares, "--local-directory", FOLDER))

    def read_address(self, line: str) -> str:
        found = _SCHEDULER.search(line)
        return found[1] if found else ""

    def has_joined(self, line: str) -> bool:
        return "Registered to:" in line

    def connection(self, plan: GuestPlan, address: str) -> Connection:
        pem = str(plan.pem)
        security = {"tls_ca_file": pem, "tls_client_cert": pem, "tls_client_key": pem}
        return Connection(
            address=address, options={"security": {**security, "require_encryption": True}}
        )


def _common(plan: GuestPlan) -> Argv:
    pem = str(plan.pem)
    keys = ("--tls-ca-file", pem, "--tls-cert", pem, "--tls-key", pem)
    return ("--host", f"tls://{ADDRESS}", "--no-dashboard", *keys)
