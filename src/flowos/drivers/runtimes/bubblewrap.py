"""bubblewrap: enters a folder, or a squashfs mounted by squashfuse.

Tested with bubblewrap 0.8.0 (Debian 12). No --die-with-parent: it would kill flowos-init before
that has ended its children and reported how; flowos-init detects the end of our process itself.
/proc is bound because the processes are the node's. The image must have /dev, /proc, /sys, /tmp,
/etc/{passwd,group,hosts,resolv.conf} and every target, and none may be a dangling link: bwrap
cannot create them in a read-only image.
"""

from collections.abc import Iterator
from pathlib import PurePath

from flowos._dataclasses import dataclass, replace
from flowos.drivers._base import Reason, RunDir, SetupStep, Traits
from flowos.drivers._binds import Bind, binds_of
from flowos.drivers._entering import (
    enters,
    image_to_enter,
    not_installed,
    reasons_against,
    refuse_devices,
)
from flowos.drivers._mounting import can_mount, mount_step, mounted, server_of
from flowos.model import Argv, Facts, Form, Image, Launch

_MISSING = not_installed("bwrap", "apt install bubblewrap, or dnf install bubblewrap")
_WHO_AND_WHERE = ("passwd", "group", "hosts", "resolv.conf")
_TRAITS = Traits(files=tuple(PurePath("/etc", name) for name in _WHO_AND_WHERE))


@dataclass(frozen=True, kw_only=True)
class Bubblewrap:
    """server: mounts a squashfs as a folder."""

    name: str = "bwrap"
    traits: Traits = _TRAITS
    program: str = "bwrap"
    server: str = "squashfuse"

    def variants(self, facts: Facts) -> tuple["Bubblewrap", ...]:
        tool = facts.tool("bwrap")
        if tool is None:
            return ()
        server = server_of(facts) or self.server
        return (replace(self, program=str(tool.path), server=server),)

    def usable(self, facts: Facts) -> tuple[Reason, ...]:
        if facts.tool("bwrap") is None:
            return (_MISSING,)
        return reasons_against(facts, self.name, ("user namespaces",))

    def forms(self, facts: Facts) -> tuple[Form, ...]:
        found: list[Form] = ["folder"] if enters(facts, self.name, "folder") else []
        if enters(facts, self.name, "squashfs", can_mount(facts)):
            found.append("squashfs")
        return tuple(found)

    def setup(self, image: Image, at: PurePath) -> tuple[SetupStep, ...]:
        return (mount_step(self.server, image, at),) if image.form == "squashfs" else ()

    def entered(self, image: Image, at: PurePath) -> Image:
        return mounted(image, at) if image.form == "squashfs" else image

    def teardown(self, image: Image, at: PurePath) -> tuple[Launch, ...]:  # noqa: ARG002
        return ()

    def wrap(self, inner: Argv, launch: Launch, at: RunDir) -> Argv:
        image = image_to_enter(launch, self.name, ("folder",))
        refuse_devices(launch, self.name)
        return (
            self.program,
            *("--ro-bind", str(image.source), "/"),
            *("--dev-bind", "/dev", "/dev"),
            *("--bind", "/proc", "/proc"),
            *("--bind", "/sys", "/sys"),
            *("--bind", "/tmp", "/tmp"),
            *(
                word
                for file in self.traits.files
                for word in ("--ro-bind-try", str(file), str(file))
            ),
            *_words(binds_of(launch.env, at)),
            *("--chdir", "/"),
            "--",
            *inner,
        )


def _words(binds: tuple[Bind, ...]) -> Iterator[str]:
    for bind in binds:
        yield from ("--ro-bind" if bind.read_only else "--dev-bind", bind.source, bind.target)
