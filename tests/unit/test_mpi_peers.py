"""How `benchmarks/mpi.py` asks others for one size of messages, and reads it."""

from pathlib import Path

import pytest

SAID_BY_OSU_7 = """\
  -m, --message-size        [MIN:]MAX - set the minimum and/or the maximum message size
  -T, --type                [all,mpi_char,mpi_int,mpi_float] - Set MPI_TYPE
  -z, --tail-lat            Print tail latencies.
"""
SAID_BY_OSU_5 = "  -i ITER       number of iterations for timing (default 10000)\n"
PRINTED = """\
# OSU MPI Multiple Bandwidth / Message Rate Test v5.3.2
# [ pairs: 1 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
4                      20.00        5000000.00
8                      43.01        5376515.72
8192                  572.38          69870.84
"""


@pytest.fixture(autouse=True)
def at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")


@pytest.mark.parametrize(
    ("said", "options"),
    [(SAID_BY_OSU_7, ["-m", "8:8", "-T", "mpi_float", "-z"]), (SAID_BY_OSU_5, [])],
)
def test_osu_is_asked_for_one_size_and_for_floats_where_it_can_be(
    said: str, options: list[str]
) -> None:
    from _mpi_peers import _osu_options

    assert list(_osu_options(said, "8")) == options


@pytest.mark.parametrize(
    ("said", "metric", "ours", "iterations"),
    [
        (SAID_BY_OSU_7, "latency", 3.6e-6, ("-i", "10000")),
        (SAID_BY_OSU_7, "bandwidth", 64 * 8 / 3.6e-6, ("-i", "10000")),
        (SAID_BY_OSU_7, "bidirectional_bandwidth", 128 * 8 / 3.6e-6, ("-i", "10000")),
        (SAID_BY_OSU_7, "latency", 1e-9, ("-i", "500000")),
        (SAID_BY_OSU_7, "latency", 1.0, ("-i", "20")),
        (SAID_BY_OSU_5, "latency", 3.6e-6, ()),
    ],
)
def test_osu_is_given_as_many_iterations_as_last_as_long_as_ours(
    said: str, metric: str, ours: float, iterations: tuple[str, ...]
) -> None:
    from _mpi_peers import _osu_iterations

    assert _osu_iterations(said, "8", metric, {metric: ours}) == iterations


def test_of_all_sizes_that_are_printed_the_one_asked_for_is_read() -> None:
    from _mpi_peers import OSU, _columns

    found = dict(_columns(PRINTED, "8", OSU["osu_mbw_mr"]))
    assert found == {"multi_pair_bandwidth": 43.01e6, "message_rate": 5376515.72}


def test_where_imb_had_no_time_for_a_size_there_is_no_number() -> None:
    from _mpi_peers import IMB, _columns

    printed = "      1048576 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over\n"
    assert dict(_columns(printed, "1048576", IMB["PingPong"])) == {}
