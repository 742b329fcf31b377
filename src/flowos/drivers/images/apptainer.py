"""apptainer: builds a folder from a definition file."""

from pathlib import PurePath

from flowos.model import Argv

PROGRAMS = ("apptainer", "singularity")
INSTALL = "see https://apptainer.org/docs/admin/main/installation.html"


def build(program: str, recipe: PurePath, to: PurePath) -> Argv:
    return (program, "--silent", "build", "--fix-perms", "--sandbox", str(to), str(recipe))


def version(program: str) -> Argv:
    return (program, "--version")


def read_version(stdout: str) -> str:
    return stdout.split()[-1] if stdout.split() else "unknown"
