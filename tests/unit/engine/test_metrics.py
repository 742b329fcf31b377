"""Numbers for Prometheus: the text, and who may read it where."""

import http.client
import re
import socket

import pytest

from flowos.engine.metrics import Metric, MetricsServer, metrics_text
from flowos.model import FlowosError, UsageError

BYTES = Metric(name="flowos_feed_bytes_total", kind="counter", about="Bytes.", value=3)
LINE = re.compile(
    r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="([^"\\\n]|\\.)*"(,\w+="([^"\\\n]|\\.)*")*\})? \S+'
)


def labelled(value: str, number: float) -> Metric:
    return Metric(
        name="depth", kind="gauge", about="a\\b\nc", value=number, labels=(("of", value),)
    )


def test_metrics_of_one_name_stand_together_under_one_description() -> None:
    text = metrics_text([labelled("x", 1.5), BYTES, labelled("y", 2)])
    assert text.splitlines() == [
        r"# HELP depth a\\b\nc",
        "# TYPE depth gauge",
        'depth{of="x"} 1.5',
        'depth{of="y"} 2',
        "# HELP flowos_feed_bytes_total Bytes.",
        "# TYPE flowos_feed_bytes_total counter",
        "flowos_feed_bytes_total 3",
    ]
    assert text.endswith("\n")


def test_whatever_a_label_holds_a_line_stays_a_line() -> None:
    text = metrics_text([labelled('a "quoted"\nback\\slash', float("inf"))])
    assert text.splitlines()[-1] == r'depth{of="a \"quoted\"\nback\\slash"} +Inf'
    assert all(LINE.fullmatch(line) for line in text.splitlines())
    assert metrics_text([labelled("x", float("nan"))]).endswith(" NaN\n")


def get(server: MetricsServer, path: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(*server.at, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    got = answer.status, answer.getheader("Content-Type", ""), answer.read().decode()
    connection.close()
    return got


def test_it_answers_on_loopback_with_what_the_numbers_are_now() -> None:
    value = [1]
    collect = lambda: [Metric(name="n", kind="gauge", about="N.", value=value[0])]  # noqa: E731
    with MetricsServer("127.0.0.1:0", collect) as server:
        assert get(server, "/metrics")[0] == 200
        value[0] = 2
        status, kind, text = get(server, "/metrics?x=1")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert text.endswith("n 2\n")
        assert get(server, "/")[0] == 404
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(server.at, timeout=5)


@pytest.mark.parametrize("at", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.org:0"])
def test_what_others_could_reach_is_refused_unless_it_is_wanted(at: str) -> None:
    with pytest.raises(UsageError, match=r"others could read them.*anywhere=True"):
        MetricsServer(at, list)


def test_it_serves_everywhere_when_told_so() -> None:
    with MetricsServer("0.0.0.0:0", lambda: [BYTES], anywhere=True) as server:
        assert get(server, "/metrics")[0] == 200


@pytest.mark.parametrize("at", ["9100", "127.0.0.1", "127.0.0.1:99999", "a:b:1", ""])
def test_what_is_no_place_is_refused(at: str) -> None:
    with pytest.raises(UsageError, match="expected HOST:PORT"):
        MetricsServer(at, list)


def test_a_place_that_is_taken_is_one_line() -> None:
    with MetricsServer("127.0.0.1:0", list) as server:
        at = f"127.0.0.1:{server.at.port}"
        with pytest.raises(FlowosError, match=f"metrics at {at}: Address already in use"):
            MetricsServer(at, list)
