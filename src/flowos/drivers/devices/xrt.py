"""Accelerator cards of AMD by XRT's `xrt-smi` (before 2024.2: `xbutil`, with the same words).

Written from XRT's documentation, and tried on no card.
"""

import re
from pathlib import PurePath

from flowos.drivers._devices import (
    MISSING,
    AsItIs,
    DeviceFacts,
    DeviceStep,
    DeviceWork,
    StepAnswers,
    ToolStep,
    faulty,
    refuse_failed_tool,
)
from flowos.model import Bitstream, DeviceError, DeviceKind, NodeDevice

_TOOLS = ("xrt-smi", "xbutil")
_LISTED = re.compile(r"\[([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\][\s|:]+([^\s|]+)")
_REMEDY = "it comes with XRT, whose setup.sh sets PATH"


class Xrt(AsItIs):
    """at: bus:device.function; part: the platform (shell) that xclbins are linked for."""

    name = "xrt"
    kind: DeviceKind = "fpga"
    looks: tuple[DeviceStep, ...] = tuple(ToolStep((tool, "examine")) for tool in _TOOLS)

    def find(self, facts: DeviceFacts) -> tuple[NodeDevice, ...]:
        for tool, answer in zip(_TOOLS, facts.answers, strict=False):
            if answer.code != MISSING:
                return tuple(
                    NodeDevice(
                        name=f"xrt-{at}",
                        kind="fpga",
                        driver=self.name,
                        at=at,
                        part=part,
                        options=(tool,),
                        about="card of XRT",
                    )
                    for at, part in _LISTED.findall(answer.text)
                )
        return ()

    def acquire(self, device: NodeDevice) -> DeviceWork:
        def read(answers: StepAnswers) -> NodeDevice:
            _refuse_failed(device, answers)
            if device.at not in answers[0].text:
                raise faulty(device, f"{device.options[0]} lists no {device.at} any more")
            return device

        return DeviceWork((ToolStep((*device.options, "examine")),), read)

    def configure(self, device: NodeDevice, bitstream: Bitstream, file: PurePath) -> DeviceWork:
        if bitstream.form != "xclbin":
            raise DeviceError(f"{device.name}: {file}: it takes an xclbin, not {bitstream.form}")
        return self._work(device, "program", "--device", device.at, "--user", str(file))

    def reset(self, device: NodeDevice) -> DeviceWork:
        return self._work(device, "reset", "--device", device.at, "--force")

    def _work(self, device: NodeDevice, *words: str) -> DeviceWork:
        def read(answers: StepAnswers) -> NodeDevice:
            _refuse_failed(device, answers)
            return device

        return DeviceWork((ToolStep((*device.options, *words), device.limit_seconds),), read)


def _refuse_failed(device: NodeDevice, answers: StepAnswers) -> None:
    tool = device.options[0]
    refuse_failed_tool(device, answers[0], tool, _REMEDY)
    if answers[0].code:
        said = " ".join(answers[0].text.split())[-200:]
        raise faulty(device, f"{tool} ended with {answers[0].code}: {said}")
