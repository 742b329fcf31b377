"""The server of metrics: its answers, and the addresses that it serves."""

import http.client
import socket
import sys
from collections.abc import Iterator

import pytest
from prometheus_client.core import GaugeMetricFamily

from flowos.engine import MetricsServer
from flowos.model import FlowosError, UsageError


class Collector:
    """One gauge; `value` can be changed."""

    value = 1.0

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily("n", "N.", self.value)


def get(server: MetricsServer, path: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(*server.at, timeout=300)
    connection.request("GET", path)
    answer = connection.getresponse()
    got = answer.status, answer.getheader("Content-Type", ""), answer.read().decode()
    connection.close()
    return got


def test_it_answers_on_loopback_with_what_the_numbers_are_now() -> None:
    collector = Collector()
    with MetricsServer("127.0.0.1:0", collector) as server:
        assert get(server, "/metrics")[0] == 200
        collector.value = 2.0
        status, kind, text = get(server, "/metrics?x=1")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert text.endswith("n 2.0\n")
        assert get(server, "/")[0] == 404
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(server.at, timeout=5)


@pytest.mark.parametrize("at", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.org:0"])
def test_what_others_could_reach_is_refused_unless_it_is_wanted(at: str) -> None:
    with pytest.raises(UsageError, match=r"others could read them.*anywhere=True"):
        MetricsServer(at, Collector())


def test_it_serves_everywhere_when_told_so() -> None:
    with MetricsServer("0.0.0.0:0", Collector(), anywhere=True) as server:
        assert get(server, "/metrics")[0] == 200


@pytest.mark.parametrize("at", ["9100", "127.0.0.1", "127.0.0.1:99999", "a:b:1", ""])
def test_what_is_no_place_is_refused(at: str) -> None:
    with pytest.raises(UsageError, match="expected HOST:PORT"):
        MetricsServer(at, Collector())


def test_a_place_that_is_taken_is_one_line() -> None:
    with MetricsServer("127.0.0.1:0", Collector()) as server:
        at = f"127.0.0.1:{server.at.port}"
        with pytest.raises(FlowosError, match=f"metrics at {at}: Address already in use"):
            MetricsServer(at, Collector())


def test_requests_are_not_logged(capfd: pytest.CaptureFixture[str]) -> None:
    with MetricsServer("127.0.0.1:0", Collector()) as server:
        assert get(server, "/metrics")[0] == 200
        assert get(server, "/")[0] == 404
    assert capfd.readouterr() == ("", "")


def test_without_prometheus_client_one_line_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(FlowosError, match=r"pip install 'flowos-hpc\[metrics\]'$"):
        MetricsServer("127.0.0.1:0", Collector())
