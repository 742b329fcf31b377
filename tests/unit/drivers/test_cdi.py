"""Devices by CDI: what a spec says, and what it becomes where a runtime does not know CDI."""

from pathlib import PurePath
from typing import Any

import pytest

from flowos.drivers import (
    CdiSpec,
    device_edits,
    draws,
    every_gpu,
    known_devices,
    place_devices,
    read_cdi_spec,
)
from flowos.drivers._cdi import Edits
from flowos.model import EnvironmentRefused

AT = PurePath("/tmp/flowos-7/s/devices")
SOURCE = PurePath("/etc/cdi/nvidia.yaml")
LIB = "/usr/lib/x86_64-linux-gnu"


def said(**changed: Any) -> dict[str, Any]:
    """As nvidia-ctk 1.17 writes it, shortened."""
    return {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "devices": [
            {"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}},
            {
                "name": "all",
                "containerEdits": {
                    "deviceNodes": [{"path": "/dev/nvidia0", "hostPath": "/dev/other0"}]
                },
            },
        ],
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "deviceNodes": [{"path": "/dev/nvidiactl"}],
            "hooks": [
                {
                    "hookName": "createContainer",
                    "path": "/usr/bin/nvidia-cdi-hook",
                    "args": [
                        "nvidia-cdi-hook",
                        "create-symlinks",
                        "--link",
                        f"libcuda.so.1::{LIB}/libcuda.so",
                        "--link",
                        f"nowhere.so::{LIB}/libelse.so",
                        "--folder",
                        f"libcuda.so.1::{LIB}/libfolder.so",
                        "--link",
                        "malformed",
                    ],
                }
            ],
            "mounts": [
                mount(f"{LIB}/libcuda.so.550.1"),
                mount("/usr/lib32/libcuda.so.550.1"),
                mount(f"{LIB}/libEGL_nvidia.so.550.1"),
                mount("/usr/bin/nvidia-smi"),
                mount("/lib/firmware/nvidia/550.1/gsp_ga10x.bin"),
                mount("/run/nvidia-persistenced/socket"),
                mount("/usr/share/glvnd/egl_vendor.d/10_nvidia.json"),
                mount("/usr/share/nvidia/nvoptix.bin"),
                {"hostPath": "/opt/cache", "containerPath": "/cache"},
            ],
        },
        **changed,
    }


def mount(path: str) -> dict[str, Any]:
    options = ["ro", "nosuid", "nodev", "bind"]
    return {"hostPath": path, "containerPath": path, "options": options}


def edits(*names: str) -> Edits:
    return device_edits(names, [read_cdi_spec(said(), SOURCE)])


def test_a_device_needs_its_own_nodes_and_what_all_of_its_kind_need() -> None:
    found = edits("nvidia.com/gpu=0")
    assert found.nodes == (
        ("/dev/nvidiactl", "/dev/nvidiactl"),
        ("/dev/nvidia0", "/dev/nvidia0"),
    )
    assert found.variables == (("NVIDIA_VISIBLE_DEVICES", "void"),)


def test_what_two_devices_share_is_there_once() -> None:
    both = edits("nvidia.com/gpu=0", "nvidia.com/gpu=all")
    assert len(both.mounts) == len(edits("nvidia.com/gpu=0").mounts)
    assert len(both.nodes) == 3


def test_libraries_and_programs_go_into_folders_that_need_nothing_of_the_image() -> None:
    names = {f"{LIB}/libcuda.so.550.1": ("libcuda.so.1",)}
    placed = place_devices(edits("nvidia.com/gpu=0"), AT, names)
    assert placed.binds == (
        ("/usr/share/nvidia/nvoptix.bin", "/usr/share/nvidia/nvoptix.bin:ro"),
        ("/opt/cache", "/cache"),
        (f"{LIB}/libcuda.so.550.1", f"{AT}/lib/libcuda.so.550.1:ro"),
        (f"{LIB}/libcuda.so.550.1", f"{AT}/lib/libcuda.so.1:ro"),
        (f"{LIB}/libcuda.so.550.1", f"{AT}/lib/libcuda.so:ro"),
        ("/usr/bin/nvidia-smi", f"{AT}/bin/nvidia-smi:ro"),
    )
    assert placed.libraries == ("libcuda.so.550.1", "libcuda.so.1", "libcuda.so")
    assert placed.programs == ("nvidia-smi",)


def test_what_must_be_on_the_host_is_said_and_what_is_left_out_need_not_be() -> None:
    needed = place_devices(edits("nvidia.com/gpu=0"), AT, {}).needed
    assert needed[:2] == ("/dev/nvidiactl", "/dev/nvidia0")
    assert f"{LIB}/libcuda.so.550.1" in needed
    assert not [path for path in needed if "EGL" in path or "egl" in path or "firmware" in path]


def test_a_node_that_has_another_name_inside_is_bound_there() -> None:
    placed = place_devices(edits("nvidia.com/gpu=all"), AT, {})
    assert ("/dev/other0", "/dev/nvidia0") in placed.binds
    assert "/dev/other0" in placed.needed


def test_libraries_that_draw_come_only_when_asked_for() -> None:
    placed = place_devices(edits("nvidia.com/gpu=0"), AT, {}, graphics=True)
    assert "libEGL_nvidia.so.550.1" in placed.libraries
    assert "/usr/share/glvnd/egl_vendor.d/10_nvidia.json" in dict(placed.binds)


@pytest.mark.parametrize(
    ("capabilities", "asked"),
    [("compute,utility", False), ("compute,graphics", True), ("all", True), ("", False)],
)
def test_graphics_are_asked_for_in_nvidias_words(capabilities: str, asked: bool) -> None:
    assert draws({"NVIDIA_DRIVER_CAPABILITIES": capabilities}) is asked


def test_an_unknown_device_is_refused_with_the_known_ones() -> None:
    with pytest.raises(EnvironmentRefused) as told:
        edits("nvidia.com/gpu=7")
    assert str(told.value) == (
        "device nvidia.com/gpu=7: no CDI spec of this node names it; "
        "named are nvidia.com/gpu=0, nvidia.com/gpu=all"
    )


def test_a_device_where_no_spec_is_says_where_specs_would_be() -> None:
    with pytest.raises(EnvironmentRefused, match=r"no spec at all \(/etc/cdi, /var/run/cdi\)"):
        device_edits(["nvidia.com/gpu=0"], [])


@pytest.mark.parametrize(
    "name", ["gpu", "nvidia.com/gpu", "nvidia.com/gpu=", "=0", "a/b=c d", "/dev/x"]
)
def test_what_is_no_name_of_a_device_is_refused(name: str) -> None:
    with pytest.raises(EnvironmentRefused, match=r"a CDI name is like nvidia\.com/gpu=0"):
        edits(name)


def spec(source: str, priority: int, variable: str) -> CdiSpec:
    device = {"name": "0", "containerEdits": {"env": [variable]}}
    return read_cdi_spec(said(devices=[device], containerEdits={}), PurePath(source), priority)


def test_a_spec_of_the_running_system_counts_before_an_installed_one() -> None:
    specs = [spec("/var/run/cdi/a.json", 1, "A=run"), spec("/etc/cdi/a.json", 0, "A=etc")]
    assert device_edits(["nvidia.com/gpu=0"], specs).variables == (("A", "run"),)


def test_two_specs_of_one_rank_that_name_a_device_are_refused_by_name() -> None:
    specs = [spec("/etc/cdi/a.json", 0, "A=1"), spec("/etc/cdi/b.json", 0, "A=2")]
    with pytest.raises(EnvironmentRefused, match=r"/etc/cdi/a\.json and /etc/cdi/b\.json both"):
        device_edits(["nvidia.com/gpu=0"], specs)


def test_all_gpus_of_a_node_by_name() -> None:
    amd = read_cdi_spec(
        {"cdiVersion": "1.0.0", "kind": "amd.com/gpu", "devices": [{"name": "1"}, {"name": "0"}]},
        PurePath("/etc/cdi/amd.json"),
    )
    disk = read_cdi_spec({**said(), "kind": "v.com/disk"}, SOURCE)
    specs = [amd, read_cdi_spec(said(), SOURCE), disk]
    assert every_gpu(specs) == ("amd.com/gpu=0", "amd.com/gpu=1", "nvidia.com/gpu=all")
    assert every_gpu([disk]) == ()
    assert "v.com/disk=all" in known_devices(specs)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("text", "the file is no mapping"),
        (said(kind=None), "kind is missing or no text"),
        (said(kind=""), "kind is missing or no text"),
        (said(kind="v.com/\0"), "kind is missing or no text"),
        (said(kind="gpu"), "kind 'gpu' is not like vendor.com/class"),
        (said(cdiVersion=1), "cdiVersion is missing or no text"),
        (said(devices={"name": "0"}), "devices is no list"),
        (said(devices=["0"]), "a device is no mapping"),
        (said(devices=[{"name": "0"}, {"name": "0"}]), "device '0' is twice there"),
        (said(devices=[{"name": "a b"}]), "no device's name"),
        (said(containerEdits={"env": ["A"]}), "env 'A' is not like NAME=VALUE"),
        (said(containerEdits={"env": "A=1"}), "env is no list"),
        (said(containerEdits={"deviceNodes": [{}]}), "path is missing or no text"),
        (said(containerEdits={"deviceNodes": ["x"]}), "a device node is no mapping"),
        (said(containerEdits={"mounts": [mount("/a/../b")]}), "'/a/../b' is no plain absolute"),
        (said(containerEdits={"mounts": [mount("/a:/etc")]}), "'/a:/etc' is no plain absolute"),
        (said(containerEdits={"mounts": [mount("a")]}), "hostPath 'a' is no plain absolute path"),
        (said(containerEdits={"hooks": [1]}), "a hook is no mapping"),
        (said(containerEdits=[1]), "containerEdits is no mapping"),
    ],
)
def test_a_wrong_spec_is_refused_with_its_file(wrong: object, complaint: str) -> None:
    with pytest.raises(EnvironmentRefused) as told:
        read_cdi_spec(wrong, SOURCE)
    assert str(told.value).startswith(f"CDI spec {SOURCE}: ")
    assert complaint in str(told.value)
