"""buildah and podman: a Dockerfile built by an ordinary user. They share these commands.

RUN steps are isolated by chroot alone: that works where cgroups are not given to a user, and is no
less safe for oneself.
"""

import re
from collections.abc import Sequence
from pathlib import PurePath

from flowos.model import Argv

PROGRAMS = ("buildah", "podman")


def start(program: str, storage: PurePath) -> Argv:
    """With a storage of its own: what else the user does with it is not disturbed.

    What is built on a registry's image stays there, so that a second build is quick.
    """
    return (program, "--root", str(storage / "layers"), "--runroot", str(storage / "run"))


def check(program: Argv) -> Argv:
    """Ends with 0 where it can work at all."""
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
    """arguments: names of build arguments, whose values are variables: they may be secrets."""
    given = (word for name in arguments for word in ("--build-arg", name))
    return (
        *(*program, "build", "--isolation", "chroot", "--layers"),
        *("--platform", f"linux/{architecture}", "--iidfile", str(id_file)),
        *(*given, "--file", str(recipe), str(context)),
    )


def save(program: Argv, image: str, to: PurePath) -> Argv:
    """As an OCI layout in a folder, layers not compressed."""
    if program[0] == "podman":
        options = ("--quiet", "--uncompressed", "--format=oci-dir", "--output", str(to))
        return (*program, "save", *options, image)
    return (*program, "push", "--quiet", "--disable-compression", image, f"oci:{to}")


def load(program: Argv, archive: PurePath) -> Argv:
    """Takes an OCI archive in and prints its id."""
    return (*program, "pull", "--quiet", f"oci-archive:{archive}")


def tag(program: Argv, image: str, name: str) -> Argv:
    return (*program, "tag", image, name)


def images(program: Argv, called: str = "") -> Argv:
    """Prints the ids of all images in the storage, or of those called so."""
    only = ("--filter", f"reference={called}") if called else ()
    return (*program, "images", "--all", "--quiet", "--no-trunc", *only)


def remove(program: Argv, images: Sequence[str]) -> Argv:
    """By id, whatever they are called and stand on."""
    return (*program, "rmi", "--force", *images)


def clear(program: Argv) -> Argv:
    """Remove every image."""
    return (*program, "rmi", "--all", "--force")


def drop_containers(program: Argv) -> Argv:
    """What an interrupted build left."""
    return (*program, "rm", "--all")


def version(program: Argv) -> Argv:
    return (program[0], "--version")


def read_version(stdout: str) -> str:
    found = re.search(r"version (\S+)", stdout)
    return found[1] if found else "unknown"
