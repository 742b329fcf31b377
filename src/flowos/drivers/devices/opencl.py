"""What the OpenCL platforms of a node list, as `clinfo --raw` says it."""

import re

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
_NAME = re.compile(r"^\[(\S+)/(\d+)\]\s+CL_DEVICE_NAME\s+(\S.*?)\s*$", re.MULTILINE)
_REMEDY = "install clinfo (Debian: apt-get install clinfo pocl-opencl-icd)"


class OpenCl(AsItIs):
    """at: [PLATFORM/NUMBER], the platform by its suffix for extensions."""

    name = "opencl"
    kind: DeviceKind = "opencl"
    looks: tuple[DeviceStep, ...] = (_LOOK,)

    def find(self, facts: DeviceFacts) -> tuple[NodeDevice, ...]:
        return tuple(
            NodeDevice(
                name=f"opencl-{platform.lower()}-{number}",
                kind="opencl",
                driver=self.name,
                at=f"{platform}/{number}",
                about=about,
            )
            for answer in facts.answers
            for platform, number, about in _NAME.findall(answer.text)
        )

    def acquire(self, device: NodeDevice) -> DeviceWork:
        def read(answers: StepAnswers) -> NodeDevice:
            refuse_failed_tool(device, answers[0], "clinfo", _REMEDY)
            now = self.find(DeviceFacts(answers=answers))
            if device.at not in {each.at for each in now}:
                raise faulty(device, "its platform does not list it any more")
            return device

        return DeviceWork((_LOOK,), read)
