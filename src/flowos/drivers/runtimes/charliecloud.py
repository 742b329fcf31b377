"""Charliecloud's ch-run: enters a folder, or a squashfs mounted by squashfuse.

Tested with 0.31 (Debian 12); according to their source, 0.24 to 0.39 have these options too. It
requires USER in its environment, even for --version. It binds TMPDIR, which must then exist, over
/tmp: hence our own bind of /tmp. The image must have /dev, /proc, /sys, /tmp, /etc/{passwd,group}
(it binds its own) and every target; read-only binds are not supported. With a folder it replaces
itself by the command.

It can mount a squashfs itself, and does so where squashfuse is missing. But then each start costs
20 ms, and a KILL during set-up leaves a process that nothing ends: it waits for an answer from its
dead half while it holds the descriptor whose closing would end the wait.
"""

from pathlib import PurePath

from flowos._dataclasses import dataclass, replace
from flowos.drivers._base import Reason, RunDir, SetupStep, Traits
from flowos.drivers._binds import Bind, binds_of, colon_words
from flowos.drivers._entering import (
    enters,
    image_to_enter,
    not_installed,
    reasons_against,
    refuse_devices,
    version_of,
    works,
)
from flowos.drivers._mounting import can_mount, mount_step, mounted, server_of
from flowos.model import Argv, Facts, Form, Image, Launch, LaunchFailed

_MISSING = not_installed("ch-run", "apt install charliecloud, or dnf install charliecloud (EPEL)")
_FORMS: tuple[Form, ...] = ("folder", "squashfs")
_NO_HOME_BY_DEFAULT = (0, 31)
_FILES = (PurePath("/etc/passwd"), PurePath("/etc/group"))
_TRAITS = Traits(env_blocked=("TMPDIR",), files=_FILES, binds_read_only=False)


@dataclass(frozen=True, kw_only=True)
class Charliecloud:
    """binds_home: this version shows the home folder by default.

    server: mounts a squashfs as a folder; empty: ch-run does it itself.
    """

    name: str = "ch-run"
    traits: Traits = _TRAITS
    program: str = "ch-run"
    binds_home: bool = False
    server: str = ""

    def variants(self, facts: Facts) -> tuple["Charliecloud", ...]:
        tool = facts.tool("ch-run")
        if tool is None:
            return ()
        version = version_of(tool)
        old = bool(version) and version < _NO_HOME_BY_DEFAULT
        alone = replace(self, program=str(tool.path), binds_home=old)
        helped = (replace(alone, server=server_of(facts)),) if can_mount(facts) else ()
        return (*helped, alone)

    def usable(self, facts: Facts) -> tuple[Reason, ...]:
        if facts.tool("ch-run") is None:
            return (_MISSING,)
        return reasons_against(facts, self.name, ("user namespaces",))

    def forms(self, facts: Facts) -> tuple[Form, ...]:
        otherwise = {"folder": True, "squashfs": works(facts, "fuse")}
        return tuple(f for f in _FORMS if enters(facts, self.name, f, otherwise[f]))

    def setup(self, image: Image, at: PurePath) -> tuple[SetupStep, ...]:
        return (mount_step(self.server, image, at),) if self._is_helped(image) else ()

    def entered(self, image: Image, at: PurePath) -> Image:
        return mounted(image, at) if self._is_helped(image) else image

    def teardown(self, image: Image, at: PurePath) -> tuple[Launch, ...]:  # noqa: ARG002
        return ()

    def wrap(self, inner: Argv, launch: Launch, at: RunDir) -> Argv:
        image = image_to_enter(launch, self.name, _FORMS)
        refuse_devices(launch, self.name)
        binds = binds_of(launch.env, at)
        for bind in binds:
            _refuse_read_only(bind)
        return (
            self.program,
            *("--cd", "/"),
            *(("--no-home",) if self.binds_home else ()),
            *("--bind", "/tmp:/tmp"),
            *colon_words(self.name, "--bind", binds, ends=":"),
            str(image.source),
            "--",
            *inner,
        )

    def _is_helped(self, image: Image) -> bool:
        return bool(self.server) and image.form == "squashfs"


def _refuse_read_only(bind: Bind) -> None:
    if bind.read_only:
        raise LaunchFailed(
            f"{bind}: ch-run cannot bind for reading only; leave out :ro, or use another runtime"
        )
