"""Devices of the host in an image, by CDI: a driver as a vendor's spec describes it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.engine import here
from flowos.model import Environment, Form

from .conftest import Images, ready_or_skip

FLOWOS = str(Path(sys.executable).with_name("flowos"))

RUNTIMES: tuple[tuple[str, Form], ...] = (
    ("ch-run", "squashfs"),
    ("bwrap", "folder"),
    ("podman", "squashfs"),
    ("apptainer", "squashfs"),
)


@pytest.fixture(scope="module", params=RUNTIMES, ids=lambda place: "-".join(place))
def env(request: pytest.FixtureRequest, images: Images) -> str:
    runtime, form = request.param
    with ready_or_skip(Environment(image=here().image_at(images.of(form)), runtime=runtime)):
        return f"{images.of(form)}@{runtime}"


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver as NVIDIA's lies on a host, and its spec in a folder of its own."""
    home = Path.home() / "flowos-test-driver"  # not to be seen inside as it is
    shutil.rmtree(home, ignore_errors=True)
    for folder in ("lib", "bin", "share"):
        (home / folder).mkdir(parents=True)
    (home / "lib/libcuda.so.550.1").write_text("a driver")
    (home / "lib/libcuda.so.1").symlink_to("libcuda.so.550.1")
    (home / "lib/libGLX_nvidia.so.550.1").write_text("draws")
    (home / "bin/nvidia-smi").write_text("#!/bin/sh\necho one GPU\n")
    (home / "bin/nvidia-smi").chmod(0o755)
    specs = tmp_path / "cdi"
    specs.mkdir()
    (specs / "fake.json").write_text(json.dumps(spec(home)))
    monkeypatch.setenv("FLOWOS_CDI_DIRS", str(specs))
    return home


def spec(home: Path, node: str = "/dev/null") -> dict[str, Any]:
    def mount(path: str) -> dict[str, Any]:
        inside = f"/usr/lib/x86_64-linux-gnu/{Path(path).name}" if "lib" in path else f"/usr/{path}"
        return {"hostPath": str(home / path), "containerPath": inside, "options": ["ro"]}

    files = ("lib/libcuda.so.550.1", "lib/libGLX_nvidia.so.550.1", "bin/nvidia-smi")
    return {
        "cdiVersion": "0.6.0",
        "kind": "nvidia.com/gpu",
        "devices": [{"name": "all", "containerEdits": {"deviceNodes": [{"path": node}]}}],
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "mounts": [mount(file) for file in files],
            "hooks": [
                {
                    "hookName": "createContainer",
                    "path": "/usr/bin/nvidia-cdi-hook",
                    "args": ["hook", "create-symlinks", "--link", "libcuda.so.1::/x/libcuda.so"],
                }
            ],
        },
    }


def flowos(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [FLOWOS, *words],
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
    )


LOOKS = """
for name in libcuda.so libcuda.so.1 libcuda.so.550.1; do
  for folder in $(echo $LD_LIBRARY_PATH | tr : ' '); do cat $folder/$name 2>/dev/null; done
  echo " is $name"
done
nvidia-smi
test -e ${LD_LIBRARY_PATH%%:*}/libGLX_nvidia.so.550.1 && echo draws
echo $NVIDIA_VISIBLE_DEVICES; test -c /dev/null && echo node
"""


def test_a_driver_is_found_under_all_its_names_with_its_programs_and_variables(
    env: str, driver: Path, tmp_path: Path
) -> None:
    assert driver.exists()
    words = ("--env", env, "--device", "nvidia.com/gpu=all", "--", "sh", "-c", LOOKS)
    done = flowos("exec", *words, cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "a driver is libcuda.so",
        "a driver is libcuda.so.1",
        "a driver is libcuda.so.550.1",
        "one GPU",
        "void",
        "node",
    ]
    waited = r"flowos exec: note: image .* is unpacked once .*\n"  # said where it takes a second
    assert (done.returncode, re.sub(waited, "", done.stderr)) == (0, "")


def test_what_draws_comes_when_it_is_asked_for(env: str, driver: Path, tmp_path: Path) -> None:
    assert driver.exists()
    asked = ("--var", "NVIDIA_DRIVER_CAPABILITIES=compute,graphics")
    words = ("--env", env, "--device", "nvidia.com/gpu=all", *asked, "--", "sh", "-c", LOOKS)
    assert "draws" in flowos("exec", *words, cwd=tmp_path).stdout.splitlines()


def test_a_device_that_no_spec_names_is_refused_with_those_that_are_named(
    env: str, driver: Path, tmp_path: Path
) -> None:
    assert driver.exists()
    words = ("exec", "--env", env, "--device", "nvidia.com/gpu=7", "--", "true")
    done = flowos(*words, cwd=tmp_path)
    assert done.returncode == 125
    assert done.stderr == (
        "flowos exec: device nvidia.com/gpu=7: no CDI spec of this node names it; "
        "named are nvidia.com/gpu=all\n"
    )


@pytest.mark.parametrize("missing", ["lib/libcuda.so.550.1", "node"])
def test_a_part_of_a_driver_that_is_missing_is_refused_by_its_name(
    env: str, driver: Path, tmp_path: Path, missing: str
) -> None:
    """Where `apptainer --nv` says nothing."""
    if missing == "node":
        (tmp_path / "cdi/fake.json").write_text(json.dumps(spec(driver, "/dev/nvidia99")))
    else:
        (driver / missing).unlink()
    words = ("exec", "--env", env, "--device", "nvidia.com/gpu=all", "--", "true")
    done = flowos(*words, cwd=tmp_path)
    path = "/dev/nvidia99" if missing == "node" else driver / missing
    assert (done.returncode, done.stderr.count("\n")) == (125, 1)
    assert f"device nvidia.com/gpu=all: {path} is not there, which {tmp_path}/cdi/" in done.stderr


def test_what_devices_need_goes_with_the_environment_or_its_refusal(env: str, driver: Path) -> None:
    requested = fo.environment(env, devices=["nvidia.com/gpu=all"])
    with here().ready(requested):
        assert folders_for_devices() != []
    assert folders_for_devices() == []
    (driver / "bin/nvidia-smi").unlink()
    with pytest.raises(fo.EnvironmentRefused, match="nvidia-smi is not there"):
        here().ready(requested)
    assert folders_for_devices() == []


def folders_for_devices() -> list[Path]:
    return list(here().folder().glob("devices-*"))


def test_a_task_that_needs_gpus_gets_them_in_an_image(
    env: str, driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert driver.exists()
    monkeypatch.setattr("flowos.engine.local._processors.gpu_count", lambda: 1)
    smi = fo.command(["nvidia-smi"], stdout="said", needs=fo.Needs(gpus=1))
    with fo.slice(fo.flow_output(smi()), env) as s:
        assert s.run() == ["one GPU\n"]


def test_gpus_without_a_spec_are_refused_with_how_one_is_made(
    env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWOS_CDI_DIRS", str(tmp_path))
    monkeypatch.setattr("flowos.engine.local._processors.gpu_count", lambda: 1)
    smi = fo.command(["nvidia-smi"], stdout="said", needs=fo.Needs(gpus=1))
    with pytest.raises(fo.SliceRefused, match=r"task 'nvidia-smi' needs GPUs, .* nvidia-ctk cdi"):
        fo.slice(fo.flow_output(smi()), env)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.json", "{", "a.json: Expecting property name"),
        ("a.json", "[]", "a.json: the file is no mapping"),
        ("a.yaml", "kind: x: y", "a.yaml: "),
    ],
)
def test_a_spec_that_cannot_be_read_is_named(
    env: str, driver: Path, tmp_path: Path, name: str, text: str, complaint: str
) -> None:
    assert driver.exists()
    (tmp_path / "cdi" / name).write_text(text)
    words = ("exec", "--env", env, "--device", "nvidia.com/gpu=all", "--", "true")
    done = flowos(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (125, 1)
    assert f"CDI spec {tmp_path}/cdi/{complaint}" in done.stderr


def test_a_spec_may_be_written_in_yaml(env: str, driver: Path, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    (tmp_path / "cdi/fake.json").rename(tmp_path / "cdi/was")
    (tmp_path / "cdi/fake.yaml").write_text(yaml.safe_dump(spec(driver)))
    words = ("--env", env, "--device", "nvidia.com/gpu=all", "--", "nvidia-smi")
    assert flowos("exec", *words, cwd=tmp_path).stdout == "one GPU\n"
    assert os.environ["FLOWOS_CDI_DIRS"] == str(tmp_path / "cdi")
