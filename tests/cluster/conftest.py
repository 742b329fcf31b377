"""A real Slurm of the user that runs the tests: in CI that is the one of tools/as-user."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.waiting import comes

from .box import Box, namespace
from .cloud_nodes import NODES, down, out, states
from .grid import Grid


@pytest.fixture(scope="session", autouse=True)
def namespaces() -> None:
    """What there must be; in CI there is."""
    words = (*namespace(apart=True), "true")
    tried = subprocess.run(words, capture_output=True, text=True)
    if tried.returncode:
        complaint = f"no namespaces here: {tried.stderr.strip()}"
        pytest.fail(complaint) if os.environ.get("CI") else pytest.skip(complaint)


@pytest.fixture(scope="session")
def box(namespaces: None) -> Iterator[Box]:  # noqa: ARG001
    """One for all tests that leave no job in it."""
    with Box() as box:
        yield box


@pytest.fixture(scope="session")
def machines(namespaces: None) -> Iterator[Box]:  # noqa: ARG001
    """One whose nodes are apart, for all tests that leave it as it was."""
    with Box(apart=True) as box:
        yield box


@pytest.fixture(scope="session")
def grid(namespaces: None) -> Iterator[Grid]:  # noqa: ARG001
    """One Grid Engine for all tests that leave no job in it."""
    with Grid() as grid:
        yield grid


@pytest.fixture(scope="module")
def clouds(namespaces: None) -> Iterator[Box]:  # noqa: ARG001
    """One with two nodes that it powers up, which are apart."""
    with Box(nodes=1, apart=True, cloud=2) as box:
        yield box


@pytest.fixture
def cloud(clouds: Box) -> Iterator[Box]:
    """Its nodes are powered down, before and after."""
    clouds.set_cloud()
    (clouds.folder / "cloud.log").write_text("")
    assert comes(lambda: down(clouds) == {*NODES}), states(clouds)
    yield clouds
    clouds.set_cloud()
    for node in states(clouds):
        if out(clouds, node):
            clouds.run("scontrol", "update", f"NodeName={node}", "State=POWER_DOWN_FORCE")
