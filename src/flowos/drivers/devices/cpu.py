"""The processors of a node, as one device: they are there, and the ledger counts their cores."""

import re

from flowos.drivers._devices import AsItIs, DeviceFacts, DeviceStep, ToolStep
from flowos.model import DeviceKind, NodeDevice

_MODEL = re.compile(r"^Model name:\s*(\S.*?)\s*$", re.MULTILINE)


class Cpu(AsItIs):
    name = "cpu"
    kind: DeviceKind = "cpu"
    looks: tuple[DeviceStep, ...] = (ToolStep(("lscpu",)),)

    def find(self, facts: DeviceFacts) -> tuple[NodeDevice, ...]:
        models = [name for answer in facts.answers for name in _MODEL.findall(answer.text)]
        about = ", ".join((f"{facts.cores} cores for us", *models[:1]))
        return (NodeDevice(name="cpu", kind="cpu", driver=self.name, at="cpu", about=about),)
