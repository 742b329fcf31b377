"""Pools whose nodes are machines of a cloud: what those promise, have and cost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flowos.operations.settings_file import load_settings
from tests.integration.conftest import called_here

POOL = '[pools.hb]\nkind = "fake"\nnodes = 2\ncores = 2\nsize = "{}"\n'


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("FLOWOS_CONFIG", raising=False)


EAST = 'region = "eastus"'
OWN = ("[sizes.own]", "price = 2", "vcpus = 4")


def settings(*lines: str, size: str = "Standard_HB120rs_v3") -> None:
    Path("flowos.toml").write_text("\n".join((POOL.format(size), *lines)))


def flowos(*words: str) -> "subprocess.CompletedProcess[str]":
    return called_here([*words], Path.cwd(), dict(os.environ))


def price_of(name: str) -> tuple[float | None, str]:
    (price,) = (pool.price for pool in load_settings().pools if pool.name == name)
    assert price
    return price.per_node_hour, price.currency


@pytest.mark.parametrize(
    ("lines", "price"),
    [
        ((EAST,), (3.6, "USD")),
        (('region = "japaneast"',), (756.9, "JPY")),
        ((EAST, "spot = true"), (0.396, "USD")),
        (('region = "mars"', "price = {per_node_hour = 1.5}"), (1.5, "EUR")),
        (("price = {per_node_hour = 1.5}",), (1.5, "EUR")),
        ((EAST, "price = {}"), (3.6, "USD")),
        (('[sizes."Standard_HB120rs_v3"]', "price = 2", 'currency = "CHF"'), (2.0, "CHF")),
    ],
)
def test_nodes_cost_what_their_size_does_unless_the_settings_say_it(
    lines: tuple[str, ...], price: tuple[float, str]
) -> None:
    settings(*lines)
    assert price_of("hb") == price


@pytest.mark.parametrize("region", ["", EAST])
def test_a_size_without_a_region_has_its_price_in_all(region: str) -> None:
    settings(region, *OWN, size="own")
    assert price_of("hb") == (2.0, "USD")


def test_a_pool_with_a_price_of_its_own_shows_none_of_another_region() -> None:
    settings("price = {per_node_hour = 1.5}")
    line = flowos("pools").stdout.split("  size ")[1]
    assert line.startswith("Standard_HB120rs_v3  azure  120 vCPUs  456 GiB  200 Gbit/s  (")


def test_a_slice_costs_what_its_nodes_do() -> None:
    settings("[sizes.own]", "price = 3600", 'currency = "CHF"', size="own")
    holds = "import flowos as fo\nfo.slice(pool='hb', nodes=2).free()"
    subprocess.run((sys.executable, "-c", holds), check=True)
    (found,) = json.loads(flowos("slice", "ls", "--json").stdout)
    assert found["price"] == {"per_node_hour": 3600.0, "currency": "CHF"}
    assert found["cost"] == pytest.approx(found["node_seconds"])


@pytest.mark.parametrize(
    ("size", "lines", "at", "complaint"),
    [
        ("Standard_HB120rs_v9", (), 5, "size: no size 'Standard_HB120rs_v9'; the nearest is 'Stan"),
        (
            "Standard_HB120rs_v3",
            ('region = "mars"',),
            7,
            "region: Standard_HB120rs_v3 has no price",
        ),
        (
            "Standard_HB120rs_v3",
            (),
            1,
            "region: it is empty, and Standard_HB120rs_v3 costs more in some",
        ),
        ("Standard_NC40ads_H100_v5", ("spot = true",), 7, "spot: no spot price of Standard_NC40"),
        (
            "own",
            ("spot = true", "[sizes.own]", "price = 1"),
            7,
            "spot: no spot price of own is kno",
        ),
        (
            "own",
            ('region = "x"', "[sizes.own]", 'region = "y"'),
            7,
            "region: own has no price in x; name one of y",
        ),
    ],
)
def test_a_size_that_is_not_known_is_one_line(
    size: str, lines: tuple[str, ...], at: int, complaint: str
) -> None:
    settings(*lines, size=size)
    done = flowos("pools")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"flowos pools: flowos.toml:{at}: pools.hb.{complaint}")


@pytest.mark.parametrize(
    ("given", "key", "also"),
    [
        (("--set pools.hb.size=Standard_XX",), "size", ""),
        (("--set pools.hb.region=mars", "--set pools.hb.nodes=1"), "region", ""),
        (("--set pools.hb.size=g6.4xlarge",), "", "--set pools.hb.size=g6.4xlarge"),
        (("FLOWOS_POOLS_HB_SIZE=Standard_XX",), "size", ""),
        (("FLOWOS_POOLS_HB_REGION=mars",), "region", ""),
    ],
)
def test_a_size_that_is_not_known_is_said_where_it_was_given(
    monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], key: str, also: str
) -> None:
    settings(EAST)
    options = [word for each in given if each.startswith("--set") for word in each.split()]
    for name, value in (each.split("=") for each in given if not each.startswith("--set")):
        monkeypatch.setenv(name, value)
    done = flowos(*options, "pools")
    (line,) = done.stderr.splitlines()
    at = given[0] if options else given[0].partition("=")[0]
    place = f"{at}: pools.hb.{key}: " if key else "flowos.toml:7: pools.hb.region: "
    assert line.startswith(f"flowos pools: {place}")
    assert line.endswith(f" (with {also})" if also else line)


def test_what_a_size_promises_is_shown_beside_what_its_nodes_have() -> None:
    settings(EAST)
    shown = flowos("pools").stdout
    assert (
        "size Standard_HB120rs_v3  azure  eastus  120 vCPUs  456 GiB  200 Gbit/s  3.6 USD" in shown
    )
    assert "promised" not in shown
    done = flowos("pools", "--check")
    assert done.returncode == 0
    assert "  hb-1: vCPUs: 120 promised, 2 seen, memory: 456 GiB promised, " in done.stdout
    (state,) = (
        each
        for each in json.loads(flowos("pools", "--check", "--json").stdout)
        if each["pool"]["name"] == "hb"
    )
    assert state["size"]["source"].endswith("read 2026-11-23")
    first = state["promises"][state["nodes"][0]["name"]][0]
    assert first == {"what": "vCPUs", "promised": 120, "seen": 2}


def test_nodes_that_keep_their_promise_are_one_line() -> None:
    settings("[sizes.own]", "vcpus = 2", size="own")
    assert "  all 2 nodes have what own promises\n" in flowos("pools", "--check").stdout
    settings("[sizes.own]", "vcpus = 4", size="own")
    assert "4 promised, 2 seen (one of two threads a core?)" in flowos("pools", "--check").stdout


def test_sizes_of_the_settings_are_listed_with_those_of_the_catalogue() -> None:
    settings("[sizes.own]", "vcpus = 500", "price = 1", 'source = "us"', size="own")
    line, source = flowos("cloud", "sizes", "--vcpus", "400").stdout.splitlines()
    assert line.split() == ["own", "500", "vCPUs", "1.0000", "USD/h"]
    assert source == "# us"
