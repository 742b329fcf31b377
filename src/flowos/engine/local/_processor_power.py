"""Energy, temperature and throttling of the processors, as the kernel counts them.

Energy: RAPL (Linux Documentation/power/powercap/powercap.rst), of Intel's and AMD's packages;
most kernels let only root read it (CVE-2020-8694). Virtual machines have none of it, as a rule.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from flowos.engine._look import EnergyCounter

_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
"""Drivers of hwmon whose temperatures are those of processors."""
_ZONES = ("x86_pkg_temp", "cpu")
"""How the types of such thermal zones begin."""


def energy(root: Path = Path("/")) -> tuple[EnergyCounter, ...]:
    """A counter for each package, without memory; none if one of them cannot be read.

    Its parts (core, uncore), psys, and the same counter again (intel-rapl-mmio) are left out.
    """
    folders = (root / "sys/class/powercap").glob("intel-rapl:*")
    found = []
    for folder in sorted(folders):
        if folder.name.count(":") == 1 and _text(folder / "name").startswith("package"):
            count, most = (_number(folder / f) for f in ("energy_uj", "max_energy_range_uj"))
            if count is None or not most:
                return ()
            found.append(EnergyCounter(folder.name, count * 1e-6, most * 1e-6))
    return tuple(found)


def celsius(root: Path = Path("/")) -> float | None:
    """Of the hottest sensor of the processors."""
    sensors = (root / "sys/class/hwmon").glob("hwmon*/name")
    files = [f for n in sensors if _text(n) in _SENSORS for f in n.parent.glob("temp*_input")]
    zones = (root / "sys/class/thermal").glob("thermal_zone*/type")
    files = files or [z.with_name("temp") for z in zones if _text(z).startswith(_ZONES)]
    return max((n * 1e-3 for n in _numbers(files)), default=None)


def throttles(root: Path = Path("/")) -> int | None:
    """How often cores and packages were slowed down by heat since the machine started.

    A package's count is shown by each of its cpus, and counts once for each.
    """
    files = (root / "sys/devices/system/cpu").glob("cpu*/thermal_throttle/*_throttle_count")
    found = list(_numbers(files))
    return sum(found) if found else None


def _numbers(files: Iterable[Path]) -> Iterator[int]:
    return (n for file in files if (n := _number(file)) is not None)


def _number(file: Path) -> int | None:
    text = _text(file)
    return int(text) if text.lstrip("-").isdigit() else None


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
