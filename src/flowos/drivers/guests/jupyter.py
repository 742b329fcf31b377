"""Jupyter: one server, on the first node."""

import re
from collections.abc import Mapping

from flowos._dataclasses import dataclass
from flowos.drivers._guests import ADDRESS, FOLDER, Connection, GuestPlan, GuestWords
from flowos.model import Pairs

_URL = re.compile(r"(https?://[^/\s]+/[^?\s]*)")


@dataclass(frozen=True)
class Jupyter:
    """See `GuestDriver`. Its address is a page; from another machine that is had by TLS alone."""

    name: str = "jupyter"
    modules: tuple[str, ...] = ("jupyterlab", "ipykernel")
    remedy: str = "pip install jupyterlab ipykernel"
    complaints: Pairs = ()
    hasty: str = ""
    certified: bool = True
    head_is_ours: bool = False

    def files(self, plan: GuestPlan) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    def head(self, plan: GuestPlan) -> GuestWords:
        pem = plan.pem
        keys = (f"--ServerApp.certfile={pem}", f"--ServerApp.keyfile={pem}") * (not plan.here)
        return GuestWords(
            argv=(
                *(plan.python, "-m", "jupyterlab", "--no-browser", "--allow-root"),
                *(f"--ServerApp.ip={ADDRESS}", "--ServerApp.port=0"),
                *(f"--ServerApp.root_dir={plan.cwd}", *keys),
            ),
            variables=(("JUPYTER_TOKEN", plan.secret), ("JUPYTER_RUNTIME_DIR", FOLDER)),
        )

    def worker(self, plan: GuestPlan, address: str) -> None:  # noqa: ARG002
        return None

    def read_address(self, line: str) -> str:
        found = _URL.search(line)
        return found[1] if found and "token=" in line else ""

    def has_joined(self, line: str) -> bool:  # noqa: ARG002
        return False

    def connection(self, plan: GuestPlan, address: str) -> Connection:
        return Connection(address=f"{address}?token={plan.secret}", options={})
