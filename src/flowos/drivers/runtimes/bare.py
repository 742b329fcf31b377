"""The node's own environment, without an image."""

from pathlib import PurePath
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass
from flowos.drivers._base import Reason, RunDir, SetupStep, Traits
from flowos.model import Argv, Form, Image, Launch, LaunchFailed

if TYPE_CHECKING:
    from flowos.model import Facts

_TRAITS = Traits()


@dataclass(frozen=True)
class Bare:
    name: str = "bare"
    traits: Traits = _TRAITS

    def variants(self, facts: "Facts") -> tuple["Bare", ...]:  # noqa: ARG002
        return (self,)

    def usable(self, facts: "Facts") -> tuple[Reason, ...]:  # noqa: ARG002 - works on every node
        return ()

    def forms(self, facts: "Facts") -> tuple[Form, ...]:  # noqa: ARG002
        return ()

    def setup(self, image: Image, at: PurePath) -> tuple[SetupStep, ...]:  # noqa: ARG002
        raise _no_image(image)

    def entered(self, image: Image, at: PurePath) -> Image:  # noqa: ARG002
        raise _no_image(image)

    def teardown(self, image: Image, at: PurePath) -> tuple[Launch, ...]:  # noqa: ARG002
        raise _no_image(image)

    def wrap(self, inner: Argv, launch: Launch, at: RunDir) -> Argv:  # noqa: ARG002
        if launch.env.image is not None:
            raise _no_image(launch.env.image)
        if launch.env.binds:
            source, target = launch.env.binds[0]
            raise LaunchFailed(
                f"bind {source} at {target}: the bare runtime shows folders where they are; "
                "leave out binds, or name a runtime that enters an image"
            )
        return inner


def _no_image(image: Image) -> LaunchFailed:
    return LaunchFailed(f"image {image.source}: the bare runtime enters no image; name another")
