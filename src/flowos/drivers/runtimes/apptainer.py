"""Apptainer and Singularity: enter a folder, a squashfs or a SIF.

Tested with Apptainer 1.4.5 (Debian unstable) without its setuid program; as root with `--userns`
only. Options of other versions come from the option table and `--mount` parser of main 917d665
(1.5.3), and from the change logs of Apptainer 1.0 to 1.5 and SingularityCE 3.7 to 4.2.
`-s`: errors only. Home and working folder are hidden; apptainer.conf shows /tmp, /dev, /proc, /sys
and /etc/{passwd,group,hosts,resolv.conf}. Targets of binds are created over the image.
`--no-eval`: variables are not evaluated as shell scripts.
"""

from collections.abc import Iterator
from pathlib import PurePath

from flowos._dataclasses import dataclass, replace
from flowos.drivers._base import Reason, RunDir, SetupStep, Traits
from flowos.drivers._binds import Bind, binds_of, colon_words, mount_words
from flowos.drivers._entering import (
    enters,
    image_to_enter,
    not_installed,
    reasons_against,
    refuse_devices,
    refuse_words_not_utf8,
    version_of,
    works,
)
from flowos.drivers._mounting import can_mount, mount_step, mounted, server_of
from flowos.model import Argv, Facts, Form, Image, Launch, Tool

_MISSING = not_installed(
    "apptainer", "see apptainer.org for packages, or dnf install apptainer (EPEL)"
)
_FORMS: tuple[Form, ...] = ("folder", "squashfs", "sif")
_FIRST_SINGULARITY = (2,)
"""A `singularity` of version 1 is Apptainer under its old name."""


@dataclass(frozen=True, kw_only=True)
class Apptainer:
    """userns: do not use its setuid program. knows_*: options that its version supports.

    server: mounts a squashfs as a folder, once for all launches. If empty, Apptainer mounts it
    itself, which is slower for each launch and leaves its commands without a root if its server is
    killed.
    """

    name: str = "apptainer"
    program: str = "apptainer"
    userns: bool = False
    server: str = ""
    knows_mount: bool = True
    knows_no_eval: bool = True
    knows_devices: bool = True

    @property
    def traits(self) -> Traits:
        return Traits(
            env_blocked=("APPTAINER", "SINGULARITY"),
            makes_targets=True,
            reads_cdi=self.knows_devices,
            has_helpers=True,
        )

    def variants(self, facts: Facts) -> tuple["Apptainer", ...]:
        """Without the setuid program first; with it if the kernel forbids user namespaces."""
        tool = _tool(facts)
        if tool is None:
            return ()
        found = self._of(tool)
        alone = (replace(found, userns=True), found)
        server = server_of(facts) if can_mount(facts) else ""
        return (*(replace(way, server=server) for way in alone if server), *alone)

    def usable(self, facts: Facts) -> tuple[Reason, ...]:
        if _tool(facts) is None:
            return (_MISSING,)
        return reasons_against(facts, self.name, ())

    def forms(self, facts: Facts) -> tuple[Form, ...]:
        """A SIF contains a squashfs, so whatever enters one can enter the other."""
        squashfs = enters(facts, self.name, "squashfs", works(facts, "fuse"))
        able = {
            "folder": enters(facts, self.name, "folder"),
            "squashfs": squashfs,
            "sif": enters(facts, self.name, "sif", squashfs),
        }
        return tuple(form for form in _FORMS if able[form])

    def setup(self, image: Image, at: PurePath) -> tuple[SetupStep, ...]:
        return (mount_step(self.server, image, at),) if self._is_helped(image) else ()

    def entered(self, image: Image, at: PurePath) -> Image:
        return mounted(image, at) if self._is_helped(image) else image

    def teardown(self, image: Image, at: PurePath) -> tuple[Launch, ...]:  # noqa: ARG002
        return ()

    def wrap(self, inner: Argv, launch: Launch, at: RunDir) -> Argv:
        image = image_to_enter(launch, self.name, _FORMS)
        refuse_words_not_utf8(inner, self.name)
        if not self.knows_devices:
            refuse_devices(launch, f"this version of {PurePath(self.program).name}")
        return (
            *(self.program, "-s", "exec"),
            *(("--userns",) if self.userns else ()),
            *(("--no-eval",) if self.knows_no_eval else ()),
            *("--no-home", "--pwd", "/"),
            *self._binds(binds_of(launch.env, at)),
            *(word for device in launch.env.devices for word in ("--device", device)),
            str(image.source),
            *inner,
        )

    def _is_helped(self, image: Image) -> bool:
        return bool(self.server) and image.form == "squashfs"

    def _of(self, tool: Tool) -> "Apptainer":
        """An unknown version is treated as the newest."""
        version = version_of(tool)
        itself = tool.name == "apptainer" or (bool(version) and version < _FIRST_SINGULARITY)
        mount, no_eval = ((1,), (1, 1)) if itself else ((3, 9), (3, 10))
        return replace(
            self,
            program=str(tool.path),
            knows_mount=not version or version >= mount,
            knows_no_eval=not version or version >= no_eval,
            knows_devices=itself and (not version or version >= (1, 5)),
        )

    def _binds(self, binds: tuple[Bind, ...]) -> Iterator[str]:
        if self.knows_mount:
            return mount_words(binds)
        return colon_words(PurePath(self.program).name, "--bind", binds)


def _tool(facts: Facts) -> Tool | None:
    return facts.tool("apptainer") or facts.tool("singularity")
