"""BMCs of the nodes of a `Box`: what Redfish has of a system that boots once from the network.

An address names the node, as http://10.77.0.254:8000/NODE/redfish/v1/Systems/1. inside.py runs this
file.
"""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

USER = "admin:secret word"


class Machines(Protocol):
    boot_once: set[str]
    """Names of those whose next boot is from the network."""

    def reboot(self, node: str) -> None: ...


class Bmc(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, machines: Machines, *args: Any) -> None:
        self.machines = machines
        super().__init__(*args)

    def do_GET(self) -> None:
        self._answer({"PowerState": "On"})

    def do_PATCH(self) -> None:
        once = {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}
        if self._given() == {"Boot": once} and self._is_known():
            self.machines.boot_once.add(self._node())
        self._answer({})

    def do_POST(self) -> None:
        asked = self._given() == {"ResetType": "ForceRestart"} and self._is_known()
        if asked and self.path.endswith("/Actions/ComputerSystem.Reset"):
            threading.Thread(target=self.machines.reboot, args=(self._node(),)).start()
        self._answer({})

    def _is_known(self) -> bool:
        user = base64.b64encode(USER.encode()).decode()
        return self.headers["Authorization"] == f"Basic {user}"

    def _node(self) -> str:
        return self.path.split("/")[1]

    def _given(self) -> object:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, said: object) -> None:
        body = json.dumps(said).encode()
        self.send_response(200 if self._is_known() else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """To no terminal."""


def serve_bmcs(machines: Machines, host: str = "10.77.0.254", port: int = 8000) -> int:
    """Its port, in a thread that ends with the process."""
    server = ThreadingHTTPServer((host, port), lambda *args: Bmc(machines, *args))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port
