"""buildah and podman, which share these commands: build a Dockerfile as an ordinary user.

RUN steps are isolated by chroot alone: this works where users have no cgroups, and is no less safe
for one's own builds.
"""

import re
from collections.abc import Sequence
from pathlib import PurePath

from flowos.model import Argv

PROGRAMS = ("buildah", "podman")


def start(program: str, storage: PurePath) -> Argv:
    """Command prefix with a storage of its own, apart from the user's other images.

    Layers built on a registry's image stay there, which makes the next build fast.
    """
    return (program, "--root", str(storage / "layers"), "--runroot", str(storage / "run"))


def check(program: Argv) -> Argv:
    """Command that exits with 0 if the program works here."""
    return (*program, "info")


def build(
    program: Argv,
    recipe: PurePath,
    context: PurePath,
    *,
    id_file: PurePath,
    architecture: str,
    arguments: Sequence[str] = (),
) -> Argv:
    """arguments: names of build arguments; their values are variables, as they may be secrets."""
    given = (word for name in arguments for word in ("--build-arg", name))
    return (
        *(*program, "build", "--isolation", "chroot", "--layers"),
        *("--platform", f"linux/{architecture}", "--iidfile", str(id_file)),
        *(*given, "--file", str(recipe), str(context)),
    )


def save(program: Argv, image: str, to: PurePath) -> Argv:
    """Save as an OCI layout in a folder, with uncompressed layers."""
    if program[0] == "podman":
        options = ("--quiet", "--uncompressed", "--format=oci-dir", "--output", str(to))
        return (*program, "save", *options, image)
    return (*program, "push", "--quiet", "--disable-compression", image, f"oci:{to}")


def load(program: Argv, archive: PurePath) -> Argv:
    """Command that imports an OCI archive and prints its id."""
    return (*program, "pull", "--quiet", f"oci-archive:{archive}")


def tag(program: Argv, image: str, name: str) -> Argv:
    return (*program, "tag", image, name)


def images(program: Argv, called: str = "") -> Argv:
    """Command that prints the ids of all images in the storage, or of those named `called`."""
    only = ("--filter", f"reference={called}") if called else ()
    return (*program, "images", "--all", "--quiet", "--no-trunc", *only)


def remove(program: Argv, images: Sequence[str]) -> Argv:
    """Remove images by id, with all their names and even if other images depend on them."""
    return (*program, "rmi", "--force", *images)


def clear(program: Argv) -> Argv:
    """Remove every image."""
    return (*program, "rmi", "--all", "--force")


def drop_containers(program: Argv) -> Argv:
    """Remove the containers of interrupted builds."""
    return (*program, "rm", "--all")


def version(program: Argv) -> Argv:
    return (program[0], "--version")


def read_version(stdout: str) -> str:
    found = re.search(r"version (\S+)", stdout)
    return found[1] if found else "unknown"
