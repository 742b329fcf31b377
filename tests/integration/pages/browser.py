"""Debian's Chromium, headless, driven over its debugging pipe."""

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE_SECONDS

OPTIONS = (
    "--headless",
    "--no-sandbox",  # which it has not as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Browser:
    """Commands and events as JSON with a zero byte at the end, on file descriptors 3 and 4.

    See the Chrome DevTools Protocol; `complaints` collects console errors and failed loads.
    """

    def __init__(self, profile: Path, shown_in: Path | None = None) -> None:
        """shown_in: a folder for pictures that a person looks at, and no test."""
        self._shown_in = shown_in
        program = shutil.which("chromium")
        assert program, "Chromium is needed for this test: apt install chromium"
        command_in, self._commands = os.pipe()
        self._answers, answer_out = os.pipe()
        self._process = subprocess.Popen(
            [program, *OPTIONS, f"--user-data-dir={profile}"],
            preexec_fn=lambda: _as_3_and_4(command_in, answer_out),
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_in)
        os.close(answer_out)
        self._numbers = itertools.count(1)
        self._unread = b""
        self._session = ""
        self.complaints: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def close(self) -> None:
        """It exits when its pipe is closed; a hanging one is killed."""
        os.close(self._commands)
        os.close(self._answers)
        try:
            self._process.wait(timeout=PATIENCE_SECONDS)
        finally:
            self._process.kill()

    def open(self, url: str) -> None:
        """Load a page and wait until it has."""
        self.ask("Page.navigate", url=url)
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def show(self, width: int, scheme: str) -> None:
        """A window of this width, in a light or dark desktop."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", features=[feature])

    def evaluate(self, expression: str) -> Any:
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=9)

    def picture(self, file: Path) -> None:
        """The whole page as PNG."""
        got = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(got["data"]))

    def show_picture(self, name: str) -> None:
        if self._shown_in:
            self.picture(self._shown_in / name)

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, object] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != number:
            pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._answers], [], [], PATIENCE_SECONDS)
            assert ready, "the browser does not answer"
            read = os.read(self._answers, 1 << 16)
            assert read, "the browser ended"
            self._unread += read
        one, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        method, params = message.get("method", ""), message.get("params", {})
        if method in ("Runtime.exceptionThrown", "Network.loadingFailed", "Log.entryAdded"):
            self.complaints.append(f"{method}: {params}")
        if method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console: {params}")
        return message


def _as_3_and_4(first: int, second: int) -> None:
    """In the child: these descriptors become 3 and 4, whatever numbers they have."""
    spare = [os.dup2(each, 100 + i) for i, each in enumerate((first, second))]
    for wanted, each in zip((3, 4), spare, strict=True):
        os.dup2(each, wanted)
