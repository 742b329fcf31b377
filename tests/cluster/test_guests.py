"""Clusters of other frameworks on the nodes of a Slurm job, as steps of it."""

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

import flowos as fo
from tests.guests import answer_of, named_in, notebook
from tests.waiting import comes

from .box import Box
from .python_image import OURS, make_python_image

COUNTED = [["be", 2], ["not", 1], ["or", 1], ["to", 2]]
ANSWERS = {
    "ray": (1, [30, ["n1"]]),
    "spark": (1, [COUNTED, ["n1"]]),
}
"""How many nodes, and what its client gets."""
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmn96m"
"""Of all Javas, those that start others too: they end before what these leave out would pay. Room
for what is new is what most of them need: a small one is cleared dozens of times."""


@pytest.fixture(scope="module")
def box(namespaces: None) -> Iterator[Box]:  # noqa: ARG001
    with Box() as box:
        yield box


@pytest.fixture(autouse=True)
def pool(box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Its name. No job, and nothing in the shared folder, is left of a test."""
    settings = tmp_path / "flowos.toml"
    settings.write_text(f'[pools.c]\nkind = "slurm"\nnodes = 2\nshared = "{box.shared}"\n')
    for name, value in (*box.variables.items(), ("FLOWOS_CONFIG", str(settings))):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("JDK_JAVA_OPTIONS", QUICK_JAVA)
    yield "c"
    assert comes(lambda: box.ask("squeue", "--noheader") == "")
    assert comes(lambda: not list(box.shared.iterdir()))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_guest_runs_on_the_nodes_and_leaves_nothing(pool: str, name: str) -> None:
    pytest.importorskip({"dask": "distributed", "spark": "pyspark"}.get(name, name))
    nodes, answer = ANSWERS[name]
    with fo.slice(pool=pool, nodes=nodes, cores=1) as s:  # Ray starts a Python for each core
        with s.guest(name) as at:
            assert answer_of(name, at) == answer
            folders = at.folders
        assert not any(Path(folder).exists() for folder in folders)
        assert not any(map(named_in, folders))


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_python_image(tmp_path_factory.mktemp("image") / "busybox")


def test_a_guest_runs_in_the_image_of_its_slice(pool: str, image: Path) -> None:
    pytest.importorskip("distributed")
    modules = {"PYTHONPATH": sysconfig.get_path("purelib")}
    env = fo.environment(str(image), binds=[*OURS, sys.prefix], variables=modules)
    with fo.slice(pool=pool, nodes=2, env=env) as s:
        with s.guest("dask") as at:
            answer = answer_of("dask in an image", at)
            folders = at.folders
        assert not any(Path(folder).exists() for folder in folders)
        assert not any(map(named_in, folders))
    assert answer == [sum(sum(range(i)) for i in range(20)), [["n1", True], ["n2", True]]]


SCRIPTED = ("env", "bash", "dirname", "basename", "uname")
"""What the scripts of Spark call."""


@pytest.mark.parametrize("name", ANSWERS)
def test_a_guest_of_several_programs_runs_in_an_image(pool: str, image: Path, name: str) -> None:
    pytest.importorskip({"spark": "pyspark"}.get(name, name))
    java = Path("/usr/bin/java").resolve().parents[1]
    env = fo.environment(
        str(image),
        binds=[*OURS, sys.prefix, "/etc", *(f"/usr/bin/{each}" for each in SCRIPTED)],
        variables={"PYTHONPATH": sysconfig.get_path("purelib"), "JAVA_HOME": str(java)},
    )
    with fo.slice(pool=pool, nodes=1, cores=1, env=env) as s:
        with s.guest(name) as at:
            assert answer_of(name, at) == ANSWERS[name][1]
            folders = at.folders
        assert not any(Path(folder).exists() for folder in folders)
        assert not any(map(named_in, folders))


def test_an_image_that_lacks_what_a_guest_needs_is_one_line(pool: str, image: Path) -> None:
    with fo.slice(pool=pool, nodes=1, env=fo.environment(str(image), binds=OURS)) as s:
        with pytest.raises(fo.SliceRefused) as refused:
            s.guest("dask")
        says = f"guest dask: it is not installed in image {image.name}: pip install "
        assert str(refused.value) == says + "'dask[distributed]'"
    scriptless = fo.environment(
        str(image),
        binds=[*OURS, sys.prefix],
        variables={"PYTHONPATH": sysconfig.get_path("purelib")},
    )
    refused_so = pytest.raises(fo.SliceRefused, match="apt-get install bash")
    with fo.slice(pool=pool, nodes=1, env=scriptless) as s, refused_so:
        s.guest("spark")
    with fo.slice(pool=pool, nodes=1, env=fo.environment(str(image))) as s:
        with pytest.raises(fo.SliceRefused) as refused:
            s.guest("spark")
        assert f": image {image.name}: guests need a python3 in it: " in str(refused.value)


def test_a_notebook_on_a_node_has_a_url_here(
    pool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jupyterlab")
    monkeypatch.chdir(tmp_path)
    with notebook("--pool", pool) as (found, served):
        assert (found["node"], found["pool"]) == ("n1", pool)
        assert found["url"].startswith("http://127.0.0.1:")
        assert answer_of("jupyter", found["url"]) == ["4950 n1\n"]
    assert served.returncode == 0
