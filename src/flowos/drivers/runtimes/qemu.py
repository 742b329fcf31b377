"""QEMU: boots a squashfs with a kernel of the library of kernels, as an ordinary user.

Tested with QEMU 7.2 and Linux 6.1 (Debian 12). The image lies read-only on a virtio disk; the
initrd holds modules and flowos-init, which is the guest's first process, and on the node what
starts QEMU (init/boot.h). /tmp, with the run folder, and each bind are 9p shares, read and written
as the user. Processes are the guest's own, and so are its network, which has lo alone, /dev and
/sys: there are no devices of the node in it, and no ranks of a gang.

KVM is used where a tiny image boots with it: a /dev/kvm proves nothing. TCG, which needs nothing,
computes the instructions of the guest one by one. There self-tests of a kernel's ciphers, what
makes up for faults of processors, and write protection of the kernel, with the search of its page
tables for what is not protected, are left out, as they would be a good part of a boot. A guest of
TCG has the node's time stamp counter, and flowos-init adds its rate to the kernel's parameters: the
clock of a guest that measured it on a busy machine ran up to 6 times too fast. No `microvm`: it
hung in 3 of 40 boots, where q35 did in none.
"""

from collections.abc import Iterator
from pathlib import PurePath

from flowos._dataclasses import dataclass, replace
from flowos.drivers._base import Reason, RunDir, Traits
from flowos.drivers._binds import binds_of
from flowos.drivers._entering import (
    enters,
    image_to_enter,
    not_installed,
    reasons_against,
    works,
)
from flowos.model import Argv, Boot, Facts, Form, Image, Launch, LaunchFailed, LinuxKernel

PROGRAM = "qemu-system-x86_64"
_MISSING = not_installed("qemu", "apt install qemu-system-x86, or dnf install qemu-kvm")
_FORMS: tuple[Form, ...] = ("squashfs",)
_FILES = (PurePath("/etc/passwd"), PurePath("/etc/group"))
_TRAITS = Traits(files=_FILES, makes_targets=True, own_terminal=True, program=PROGRAM)
_ALWAYS = ("quiet", "console=ttyS0", "8250.nr_uarts=1", "reboot=t", "panic=-1")
_TCG_ALONE = (
    *("tsc=reliable", "no_timer_check", "rodata=off", "mitigations=off", "cryptomgr.notests"),
)
"""Without the second, a kernel on a busy machine may find that its timer does not tick, and hang:
it did in 2 of 20 boots."""
_CPU = {"kvm": "host", "tcg": "max,-erms"}
"""With erms, copies and zeros are made byte by byte, each of which TCG computes."""
_MACHINE = {"kvm": "q35", "tcg": "q35,smm=off"}
_SILENT_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Qemu:
    """silent_seconds: a guest that says nothing for so long is taken to hang, and ended."""

    name: str = "qemu"
    traits: Traits = replace(_TRAITS, accelerator="tcg")
    program: str = PROGRAM
    silent_seconds: float = _SILENT_SECONDS

    def variants(self, facts: Facts) -> tuple["Qemu", ...]:
        tool = facts.tool(PROGRAM)
        if tool is None:
            return ()
        kinds = ("kvm", "tcg") if works(facts, "kvm") else ("tcg",)
        found = replace(self, program=str(tool.path))
        return tuple(replace(found, traits=replace(_TRAITS, accelerator=each)) for each in kinds)

    def usable(self, facts: Facts) -> tuple[Reason, ...]:
        if facts.tool(PROGRAM) is None:
            return (_MISSING,)
        return reasons_against(facts, self.name, ("kernels",))

    def forms(self, facts: Facts) -> tuple[Form, ...]:
        return tuple(form for form in _FORMS if enters(facts, self.name, form))

    def setup(self, image: Image, at: PurePath) -> tuple[()]:  # noqa: ARG002
        return ()

    def entered(self, image: Image, at: PurePath) -> Image:  # noqa: ARG002
        return image

    def teardown(self, image: Image, at: PurePath) -> tuple[Launch, ...]:  # noqa: ARG002
        return ()

    def wrap(self, inner: Argv, launch: Launch, at: RunDir) -> Argv:
        image = image_to_enter(launch, self.name, _FORMS)
        _refuse_devices(launch)
        boot = launch.env.boot or Boot()
        accelerator = self.traits.accelerator
        return (
            *(inner[0], "--boot", f"{self.silent_seconds:g}"),
            *("--counter",) * (accelerator == "tcg"),
            *(word for file in self.traits.files for word in ("--copy", str(file))),
            *("--share", "/tmp", "/tmp", "rw"),
            *_shares(launch, at),
            "--",
            *(self.program, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *machine_words(accelerator),
            *("-smp", str(launch.needs.cores), "-m", f"{boot.memory_bytes >> 20}M"),
            *("-kernel", str(boot.kernel.image), "-initrd", str(boot.kernel.initrd)),
            *("-append", kernel_line(boot.kernel, accelerator)),
            *("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"),
            *("-device", "virtio-serial-pci,max_ports=8"),
            *("-blockdev", _disk(image), "-device", "virtio-blk-pci,drive=root"),
            "--",
            *inner,
        )


def machine_words(accelerator: str) -> Argv:
    """The machine, without memory and devices."""
    machine, cpu = _MACHINE[accelerator], _CPU[accelerator]
    return ("-machine", machine, "-accel", accelerator, "-cpu", cpu)


def kernel_line(kernel: LinuxKernel, accelerator: str) -> str:
    """The parameters with which a kernel is booted."""
    return " ".join((*_ALWAYS, *_TCG_ALONE * (accelerator == "tcg"), *kernel.parameters))


def _shares(launch: Launch, at: RunDir) -> Iterator[str]:
    for bind in binds_of(launch.env, at):
        yield from ("--share", bind.source, bind.target, "ro" if bind.read_only else "rw")


def _disk(image: Image) -> str:
    file = str(image.source).replace(",", ",,")
    return (
        "driver=raw,node-name=root,read-only=on,file.driver=file,file.locking=off,"
        f"file.filename={file}"
    )


def _refuse_devices(launch: Launch) -> None:
    if launch.env.devices:
        raise LaunchFailed(
            f"device {launch.env.devices[0]}: qemu knows no CDI; a booted image has no device of "
            "this machine"
        )
    if found := launch.needs.generic_resources:
        name, _ = found[0]
        raise LaunchFailed(f"device {name}: a booted image (qemu) has no device of this machine")
