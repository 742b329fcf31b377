"""The extras of the package (`pip install 'flowos-hpc[NAME]'`), and which are there."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version

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

_NAME = re.compile(r"[\w.-]+")


def extras() -> Iterator[Check]:
    """A check for each extra that this installation names."""
    for name in metadata(PACKAGE).get_all("Provides-Extra") or ():
        packages = tuple(_packages(name))
        found = [(package, _version(package)) for package in packages]
        missing = [package for package, known in found if not known]
        for_what = WHAT.get(name, "")
        if missing:
            yield Check(
                group="use",
                name=f"extra {name}",
                works=False,
                says=f"no {', '.join(missing)}: without {for_what}",
                remedy=f"pip install '{PACKAGE}[{name}]'",
            )
        else:
            says = ", ".join(f"{package} {known}" for package, known in found)
            yield Check(group="use", name=f"extra {name}", works=True, says=f"{says}: {for_what}")


def _packages(extra: str) -> Iterator[str]:
    for requirement in requires(PACKAGE) or ():
        what, _, marker = requirement.partition(";")
        if re.search(rf"extra == ['\"]{extra}['\"]", marker) and (found := _NAME.match(what)):
            yield found[0]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
