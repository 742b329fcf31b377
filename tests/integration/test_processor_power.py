"""Energy, heat and throttling of processors, from made trees: this machine may have none of it."""

from pathlib import Path

import pytest

from flowos.engine import EnergyCounter, Look, state_between
from flowos.engine.local._processor_power import celsius, energy, throttles
from flowos.engine.local._state import look


def tree(root: Path, files: dict[str, object]) -> Path:
    for name, value in files.items():
        path = root / "sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return root


def package(number: int, joules: float, name: str = "", folder: str = "") -> dict[str, object]:
    at = f"class/powercap/{folder or f'intel-rapl:{number}'}"
    return {
        f"{at}/name": name or f"package-{number}",
        f"{at}/energy_uj": round(joules * 1e6),
        f"{at}/max_energy_range_uj": 262143328850,
    }


def at(moment: float, *counters: EnergyCounter, heat: float | None = None) -> Look:
    return Look(
        at=moment,
        ours=0.0,
        busy=None,
        idle=None,
        steal=None,
        throttled=None,
        load=None,
        energy=counters,
        celsius=heat,
        heat_throttles=heat,
    )


def test_packages_are_counted_once_and_without_their_parts(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            **package(0, 10.0),
            **package(1, 20.0, name="package-1-die-0"),
            **package(2, 99.0, name="psys"),
            **package(0, 99.0, name="core", folder="intel-rapl:0:0"),
            **package(0, 10.0, folder="intel-rapl-mmio:0"),
        },
    )
    found = energy(root)
    assert [(c.name, c.joules) for c in found] == [("intel-rapl:0", 10.0), ("intel-rapl:1", 20.0)]
    assert found[0].max_joules == pytest.approx(262143.32885)
    assert look(root).energy == found


def test_of_two_packages_one_is_not_enough(tmp_path: Path) -> None:
    root = tree(tmp_path, {**package(0, 10.0), **package(1, 20.0)})
    (root / "sys/class/powercap/intel-rapl:1/energy_uj").unlink()
    assert energy(root) == ()
    assert energy(tmp_path / "nothing") == ()


def test_joules_and_watts_lie_between_two_looks() -> None:
    state = state_between(
        at(0.0, EnergyCounter("a", 1.0, 1e5), EnergyCounter("b", 5.0, 1e5), heat=60.0),
        at(2.0, EnergyCounter("a", 101.0, 1e5), EnergyCounter("b", 105.0, 1e5), heat=62.0),
    )
    assert (state.joules, state.watts) == (200.0, 100.0)
    assert (state.celsius, state.heat_throttles) == ((60.0, 62.0), 2.0)


def test_a_counter_that_began_anew_is_added_up() -> None:
    before, after = EnergyCounter("a", 65_000.0, 65_536.0), EnergyCounter("a", 64.0, 65_536.0)
    assert state_between(at(0.0, before), at(10.0, after)).joules == 600.0


def test_what_may_have_begun_anew_twice_is_not_known() -> None:
    before, after = EnergyCounter("a", 1.0, 65_536.0), EnergyCounter("a", 2.0, 65_536.0)
    assert state_between(at(0.0, before), at(66.0, after)).joules is None
    assert state_between(at(0.0), at(1.0, after)).watts is None
    assert state_between(at(0.0, before), at(1.0)).watts is None


def test_the_hottest_sensor_of_the_processors_counts(tmp_path: Path) -> None:
    hwmon, zone = "class/hwmon/hwmon", "class/thermal/thermal_zone"
    zones = {f"{zone}0/type": "x86_pkg_temp", f"{zone}0/temp": 51000, f"{zone}1/type": "acpitz"}
    root = tree(tmp_path, {**zones, f"{zone}1/temp": 99000})
    assert celsius(root) == 51.0
    tree(root, {f"{hwmon}0/name": "nvme", f"{hwmon}0/temp1_input": 80000})
    tree(root, {f"{hwmon}1/name": "k10temp", f"{hwmon}1/temp1_input": 60500})
    tree(root, {f"{hwmon}1/temp3_input": 71000, f"{hwmon}1/temp4_input": "broken"})
    assert celsius(root) == 71.0
    assert celsius(tmp_path / "nothing") is None


def test_throttling_of_all_cpus_is_counted(tmp_path: Path) -> None:
    cpu = "devices/system/cpu/cpu{}/thermal_throttle/{}_throttle_count"
    files = {cpu.format(n, what): n + 1 for n in range(2) for what in ("core", "package")}
    assert throttles(tree(tmp_path, dict(files))) == 6
    assert throttles(tmp_path / "nothing") is None
