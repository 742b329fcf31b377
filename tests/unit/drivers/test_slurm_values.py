"""Values as Slurm prints them, and what no cluster has."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowos.drivers._allocators import read_amount
from flowos.drivers._slurm_values import (
    MAX_NODES,
    read_gres,
    read_hosts,
    read_seconds,
    read_tres,
    write_seconds,
)
from flowos.model import SliceRefused


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", "n1"),
        ("n[1-3]", "n1 n2 n3"),
        ("n[08-10,12],login", "n08 n09 n10 n12 login"),
        ("rack[1-2]-n[1-2]", "rack1-n1 rack1-n2 rack2-n1 rack2-n2"),
        ("a.b-9,[1-2]x,_z", "a.b-9 1x 2x _z"),
        ("", ""),
        ("(null)", ""),
        ("None assigned", ""),
    ],
)
def test_a_list_of_nodes(text: str, names: str) -> None:
    assert read_hosts(text + "\n") == tuple(names.split())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-rf", "'-rf' is no node's name"),
        (".ssh", "'.ssh' is no node's name"),
        ("$(x)", "is no node's name"),
        ("../etc", "is no node's name"),
        ("a b", "is no node's name"),
        ("a\nb", "is no node's name"),
        ("n" * 256, "is no node's name"),
        ("n[1-3", "brackets or commas that do not match"),
        ("n]1", "brackets or commas that do not match"),
        ("a,,b", "brackets or commas that do not match"),
        (",a", "brackets or commas that do not match"),
        ("n[[1]]", "brackets or commas that do not match"),
        ("n[]", "'' is no range of numbers"),
        ("n[a-f]", "'a-f' is no range of numbers"),
        ("n[3-2]", "'3-2' is no range of numbers"),
        ("n[1-999999999]", f"more than {MAX_NODES} nodes"),
        ("n[1-65536,1]", f"more than {MAX_NODES} nodes"),
        ("n[1-257][1-256]", f"more than {MAX_NODES} nodes"),
        ("n[1-65536],m", f"more than {MAX_NODES} nodes"),
        ("n," * (1 << 19) + "n", "too long"),
    ],
)
def test_what_is_no_list_of_nodes_is_refused_in_one_line(text: str, why: str) -> None:
    with pytest.raises(SliceRefused) as refused:
        read_hosts(text)
    said = str(refused.value)
    assert said.startswith("Slurm names nodes ")
    assert said.endswith(why)
    assert "\n" not in said
    assert len(said) < 400


def test_the_largest_cluster_is_read() -> None:
    assert len(read_hosts(f"n[1-{MAX_NODES}]")) == MAX_NODES
    assert len(read_hosts("n[1-256][1-256]")) == MAX_NODES


@given(st.text(alphabet="n1[]-,.9 a", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        names = read_hosts(text)
    except SliceRefused:
        return
    assert all(name and name[0].isalnum() and "," not in name for name in names)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:03", 3.0),
        ("59:57", 3597.0),
        ("1:00:00", 3600.0),
        ("2-03:04:05", 183845.0),
        ("00:00:01.250", 1.0),
        ("UNLIMITED", math.inf),
        ("INFINITE", math.inf),
        ("5", None),
        ("INVALID", None),
        ("NOT_SET", None),
        ("Partition_Limit", None),
        ("", None),
        ("9" * 400 + ":00", None),
    ],
)
def test_a_time(text: str, seconds: float | None) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0, "0-00:01:00"),
        (0.5, "0-00:01:00"),
        (60, "0-00:01:00"),
        (61, "0-00:02:00"),
        (3540, "0-00:59:00"),
        (3600, "0-01:00:00"),
        (86400, "1-00:00:00"),
        (90061, "1-01:02:00"),
    ],
)
def test_a_time_is_written_in_whole_minutes_and_never_shorter(seconds: float, written: str) -> None:
    assert write_seconds(seconds) == written
    again = read_seconds(written)
    assert again is not None
    assert again >= seconds


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("4", 4.0),
        ("4000M", 4000.0 * 2**20),
        ("1.5g", 1.5 * 2**30),
        ("2K", 2048.0),
        ("x", None),
        ("9" * 400, None),
    ],
)
def test_an_amount(text: str, amount: float | None) -> None:
    assert read_amount(text) == amount


def test_trackable_resources() -> None:
    assert read_tres("cpu=4,mem=1T,gres/gpu:a100=2,billing=x,=3,,energy=1P") == {
        "cpu": 4.0,
        "mem": 2.0**40,
        "gres/gpu:a100": 2.0,
        "energy": 2.0**50,
    }
    assert read_tres("") == {}


def test_generic_resources_whatever_their_type() -> None:
    text = "gpu:a100:4(S:0-1),fpga:1,gpu:h100:2(IDX:0,2),nic,tape:lto,,disk:2K"
    assert read_gres(text) == {"gpu": 6, "fpga": 1, "nic": 1, "tape": 1, "disk": 2048}
    assert read_gres("(null)") == {}
