"""NVIDIA's GPUs and their MIG instances, as `nvidia-smi -L` lists them, with their CDI names."""

import re
from collections.abc import Iterator
from itertools import pairwise

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
from flowos.model import DeviceError, DeviceKind, NodeDevice

_LOOK = ToolStep(("nvidia-smi", "-L"))
_GPU = re.compile(r"GPU (\d+): (.*) \(UUID: (GPU-[\w-]+)\)")
_MIG = re.compile(r"\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (MIG-[\w/-]+)\)")
_CDI = "nvidia.com/gpu="
_REMEDY = "it comes with NVIDIA's driver"


class Cuda(AsItIs):
    """at: the UUID. Of a GPU that is cut into MIG instances these are the devices."""

    name = "cuda"
    kind: DeviceKind = "gpu"
    looks: tuple[DeviceStep, ...] = (_LOOK,)

    def find(self, facts: DeviceFacts) -> tuple[NodeDevice, ...]:
        listed = [device for answer in facts.answers for device in _listed(answer.text, facts)]
        return tuple(listed)

    def acquire(self, device: NodeDevice) -> DeviceWork:
        def read(answers: StepAnswers) -> NodeDevice:
            refuse_failed_tool(device, answers[0], "nvidia-smi", _REMEDY)
            if answers[0].code or device.at not in answers[0].text:
                raise faulty(device, f"nvidia-smi lists no {device.at} any more")
            return device

        return DeviceWork((_LOOK,), read)

    def reset(self, device: NodeDevice) -> DeviceWork:
        if device.at.startswith("MIG-"):
            raise DeviceError(f"{device.name}: a MIG instance has no reset; its GPU has")

        def read(answers: StepAnswers) -> NodeDevice:
            refuse_failed_tool(device, answers[0], "nvidia-smi", _REMEDY)
            if answers[0].code:
                said = " ".join(answers[0].text.split())[-200:]
                raise DeviceError(f"{device.name}: nvidia-smi does not reset it: {said}")
            return device

        return DeviceWork((ToolStep(("nvidia-smi", "--gpu-reset", "-i", device.at)),), read)


def _listed(text: str, facts: DeviceFacts) -> Iterator[NodeDevice]:
    """Those that CUDA_VISIBLE_DEVICES leaves us, by number or by UUID."""
    number = about = uuid = ""
    for line, following in pairwise((*text.splitlines(), "")):
        if found := _GPU.match(line):
            number, about, uuid = found.groups()
            if not _MIG.match(following) and facts.gpus and _is_visible(facts, number, uuid):
                yield _device(f"gpu{number}", about, uuid, (number, uuid), facts)
        elif (found := _MIG.match(line)) and _is_visible(facts, number, uuid, found[3]):
            size, part, own = found.groups()
            names = (f"{number}:{part}", own)
            yield _device(f"gpu{number}-mig{part}", f"{about} MIG {size}", own, names, facts)


def _is_visible(facts: DeviceFacts, *names: str) -> bool:
    return not set(names).isdisjoint(facts.gpus)


def _device(
    name: str, about: str, uuid: str, names: tuple[str, ...], facts: DeviceFacts
) -> NodeDevice:
    cdi = next((f"{_CDI}{each}" for each in names if f"{_CDI}{each}" in facts.cdi), "")
    return NodeDevice(name=name, kind="gpu", driver="cuda", at=uuid, about=about, cdi=cdi)
