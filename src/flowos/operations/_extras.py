"""The extras of the package (`pip install 'flowos-hpc[NAME]'`), and which are there."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from platform import machine

from flowos.probes.doctor import Check

PACKAGE = "flowos-hpc"
WHAT = {
    "postgresql": "a store of results in PostgreSQL",
    "mkl": "MKL among the BLAS libraries that are measured",
    "objects": "feeds from object stores (S3, GCS, Azure) and HTTP",
    "parquet": "feeds from Parquet, and reports as Parquet",
    "pictures": "feeds of pictures that are no JPEG",
    "metrics": "fo.serve_metrics, for Prometheus",
    "cloud": "machines of a cloud for nodes of Slurm",
    "opencl": "tasks in OpenCL (fo.opencl)",
    "cuda": "tasks in CUDA (fo.cuda)",
    "fpga": "bitstreams for boards with an ECP5 (fo.bitstream)",
}
"""What each is for; pyproject.toml says what it installs."""

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,]*\])?\s*(?:\(?>=\s*(?P<minimum>[\d.]+))?")
_MACHINE = re.compile(r"platform_machine\s*==\s*['\"]([^'\"]*)['\"]")


def extras() -> Iterator[Check]:
    """A check for each extra that this installation names."""
    for name in metadata(PACKAGE).get_all("Provides-Extra") or ():
        packages = dict(_packages(name))
        found = {package: _version(package) for package in packages}
        lacks = [_lack(each, found[each], packages[each]) for each in packages]
        missing = ", ".join(filter(None, lacks)) if packages else f"nothing for {machine()}"
        for_what = WHAT.get(name, "")
        if missing:
            yield Check(
                group="use",
                name=f"extra {name}",
                works=False,
                says=f"{missing}: without {for_what}",
                remedy=f"pip install '{PACKAGE}[{name}]'" if packages else "",
            )
        else:
            says = ", ".join(f"{package} {known}" for package, known in found.items())
            yield Check(group="use", name=f"extra {name}", works=True, says=f"{says}: {for_what}")


def _packages(extra: str) -> Iterator[tuple[str, str]]:
    """Those of this kind of machine, and the least version of each, "" for any."""
    for requirement in requires(PACKAGE) or ():
        what, _, marker = requirement.partition(";")
        here, is_of_it = _MACHINE.search(marker), re.search(rf"extra == ['\"]{extra}['\"]", marker)
        if is_of_it and (here is None or here[1] == machine()):
            found = _REQUIREMENT.match(what)
            assert found, requirement
            yield found["name"], found["minimum"] or ""


def _lack(package: str, known: str, minimum: str) -> str:
    if not known:
        return f"no {package}"
    return f"{package} {known}, older than {minimum}" if _parts(known) < _parts(minimum) else ""


def _parts(version: str) -> tuple[int, ...]:
    """The numbers that it begins with, without zeros at the end."""
    found = re.match(r"\d*(?:\.\d+)*", version)
    parts = [int(each) for each in (found[0] if found else "").split(".") if each]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
