"""A cloud whose machines are processes of this machine: for tests, of users too.

A machine is what its `user_data` starts, a file in `folder` its record. `answers` says what the
cloud answers instead: "create: TEXT" refuses, "create: hang" and "create: wait SECONDS" are slow;
`end` and `list` likewise.
"""

import json
import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flowos.drivers.clouds.refusals import filled, read_refusal
from flowos.engine.launch._detached import start_detached, started_at
from flowos.model import Cloud, CloudRefusal, Vm, VmOrder

_GONE_SECONDS = 5.0
_ENDED: dict[str, Any] = {"cluster": "", "pid": 0, "started": ""}
_KEYS = {*Vm.__dataclass_fields__, *_ENDED}


class FakeCloud:
    """See `Machines`."""

    def __init__(self, cloud: Cloud, user_data: str) -> None:
        self._folder = Path(cloud.folder)
        self._user_data = user_data
        pairs = (answer.partition(": ") for answer in cloud.answers)
        self._answers = {call: answer for call, _, answer in pairs}

    def existing(self, cluster: str) -> tuple[Vm, ...] | CloudRefusal:
        return self._refusal("list") or self._machines(cluster)

    def create(self, order: VmOrder) -> Vm | CloudRefusal:
        if refusal := self._refusal("create"):
            return refusal
        id = f"{order.cluster}-{order.node}-{order.nonce}"
        found = self._machines(order.cluster)
        if isinstance(found, CloudRefusal):
            return found
        same = [vm for vm in found if vm.id == id]
        if same:
            return same[0]
        try:
            vm = Vm(id=id, node=order.node, nonce=order.nonce, created=time.time())
            return self._start(vm, order.cluster, filled(self._user_data, order))
        except OSError as error:
            return CloudRefusal("unknown", f"{error.filename or self._folder}: {error.strerror}")

    def end(self, vm: Vm) -> CloudRefusal | None:
        if refusal := self._refusal("end"):
            return refusal
        record = self._record(vm.id)
        plain = _read(record) or _ENDED
        if _runs(plain):
            with suppress(ProcessLookupError):
                os.killpg(plain["pid"], signal.SIGKILL)
            until = time.monotonic() + _GONE_SECONDS
            while _runs(plain) and time.monotonic() < until:
                time.sleep(0.005)
        for file in (record, record.with_suffix(".sh")):
            file.unlink(missing_ok=True)
        return None

    def _start(self, vm: Vm, cluster: str, text: str) -> Vm:
        self._folder.mkdir(parents=True, exist_ok=True)
        record = self._record(vm.id)
        script = record.with_suffix(".sh")
        script.write_text(text)
        pid = start_detached(("sh", str(script)), os.environ, record.with_suffix(".log"))
        plain = {**asdict(vm), "cluster": cluster, "pid": pid, "started": started_at(pid)}
        part = record.with_suffix(".part")
        part.write_text(json.dumps(plain))
        part.rename(record)
        return vm

    def _machines(self, cluster: str) -> tuple[Vm, ...] | CloudRefusal:
        found = []
        for record in sorted(self._folder.glob("*.json")):
            plain = _read(record)
            if plain is None:
                return CloudRefusal("unknown", f"{record}: no record of a machine; remove it")
            if plain["cluster"] == cluster and _runs(plain):
                found.append(Vm(**{name: plain[name] for name in Vm.__dataclass_fields__}))
        return tuple(found)

    def _record(self, id: str) -> Path:
        return self._folder / f"{id}.json"

    def _refusal(self, call: str) -> CloudRefusal | None:
        answer = self._answers.get(call, "")
        if answer == "hang":
            threading.Event().wait()
        if answer.startswith("wait "):
            time.sleep(float(answer.removeprefix("wait ")))
            return None
        return read_refusal(answer) if answer else None


def _read(record: Path) -> dict[str, Any] | None:
    """None if it is none."""
    try:
        found = json.loads(record.read_text())
    except FileNotFoundError:  # it is being ended
        return _ENDED
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.keys() >= _KEYS else None


def _runs(plain: dict[str, Any]) -> bool:
    started: str = plain["started"]
    return started != "" and started_at(plain["pid"]) == started
