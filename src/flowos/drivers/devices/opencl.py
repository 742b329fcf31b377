"""What the OpenCL platforms of a node list, as `clinfo --raw` says it."""

import re
from collections import Counter

from flowos.drivers._devices import (
    AsItIs,
    DeviceFacts,
    DeviceStep,
    DeviceWork,
    StepAnswers,
    ToolStep,
    faulty,
    refuse_failed_tool,
)
from flowos.model import DeviceKind, NodeDevice

_LOOK = ToolStep(("clinfo", "--raw"))
_NAME = re.compile(r"^\[(\S+)/\d+\]\s+CL_DEVICE_NAME\s+(\S.*?)\s*$", re.MULTILINE)
_REMEDY = "install clinfo (Debian: apt-get install clinfo pocl-opencl-icd)"


class OpenCl(AsItIs):
    """at: PLATFORM/NUMBER, the platform by its suffix for extensions. Platforms of one suffix, such
    as two builds of pocl, are numbered through."""

    name = "opencl"
    kind: DeviceKind = "opencl"
    looks: tuple[DeviceStep, ...] = (_LOOK,)

    def find(self, facts: DeviceFacts) -> tuple[NodeDevice, ...]:
        counts: Counter[str] = Counter()
        found: list[NodeDevice] = []
        for platform, about in _NAME.findall("\n".join(each.text for each in facts.answers)):
            at = f"{platform}/{counts[platform.lower()]}"
            name = f"opencl-{at.replace('/', '-').lower()}"
            counts[platform.lower()] += 1
            found.append(NodeDevice(name=name, kind="opencl", driver=self.name, at=at, about=about))
        return tuple(found)

    def acquire(self, device: NodeDevice) -> DeviceWork:
        def read(answers: StepAnswers) -> NodeDevice:
            refuse_failed_tool(device, answers[0], "clinfo", _REMEDY)
            now = self.find(DeviceFacts(answers=answers))
            if device.at not in {each.at for each in now}:
                raise faulty(device, "its platform does not list it any more")
            return device

        return DeviceWork((_LOOK,), read)
