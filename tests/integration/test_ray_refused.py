"""What a slice with workers="ray" refuses before any Ray is started."""

import sys
from typing import Any

import pytest

import flowos as fo


@fo.task
def double(x: fo.int64) -> fo.int64:
    return 2 * x


FLOW = fo.flow_output(double(fo.flow_input("x", fo.int64)))


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"lease_seconds": 60}, "workers='ray': its Ray ends with this program: give no lease_sec"),
        ({"nodes": (0, 3)}, "workers='ray': its Ray stays on its nodes: say how many"),
        ({"address": "auto", "env": "bare:kernel=B"}, "kernel='B': the Ray at auto (local) boots"),
        ({"address": "local"}, "address='local' starts a Ray: leave address away"),
        ({"address": "auto", "pool": "gpu"}, "address is of a Ray that exists: give workers='ray'"),
        (
            {"address": "127.0.0.1:1"},
            "no connection to 127.0.0.1:1: [Errno 111] ",
        ),
        (
            {"address": "ray://nosuchhost.invalid:10001"},
            "no connection to ray://nosuchhost.invalid",
        ),
        ({"address": "127.0.0.1:99999"}, "no connection to 127.0.0.1:99999: "),
        ({"address": "auto", "workers": "process"}, "address is of a Ray that exists: give work"),
    ],
)
def test_what_a_ray_cannot_be_asked_for_is_one_line(keywords: dict[str, Any], says: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(fo.SliceRefused) as refused:
        fo.slice(FLOW, **{"workers": "ray", **keywords})
    assert says in str(refused.value)
    assert str(refused.value).count("\n") == 0


def test_a_ray_that_is_not_installed_is_one_line_that_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(fo.SliceRefused) as refused:
        fo.slice(FLOW, workers="ray")
    assert str(refused.value) == (
        "slice: workers='ray': Ray is not installed here: pip install ray"
    )
