"""Metrics of feeds, as Prometheus reads them."""

import re
from dataclasses import dataclass, fields
from typing import cast

from prometheus_client import CollectorRegistry, generate_latest

from flowos.feeder import Feed, Stats
from flowos.operations.feed import FeedCollector

STATS = Stats(**{field.name: field.type("2") for field in fields(Stats)})  # type: ignore[operator]
LINE = re.compile(
    r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="([^"\\\n]|\\.)*"(,\w+="([^"\\\n]|\\.)*")*\})? \S+'
)


@dataclass
class Counted:
    """Has of a feed what the collector asks for."""

    source: str
    rank: int = 0

    def stats(self) -> Stats:
        return STATS


def text_of(*feeds: Counted) -> str:
    registry = CollectorRegistry()
    registry.register(FeedCollector(cast(tuple[Feed, ...], feeds)))
    return generate_latest(registry).decode()


def test_metrics_of_one_name_stand_together_under_one_description() -> None:
    lines = text_of(Counted("/data"), Counted("/data", 1)).splitlines()
    assert lines[:4] == [
        "# HELP flowos_feed_source_bytes_total Bytes read from the source.",
        "# TYPE flowos_feed_source_bytes_total counter",
        'flowos_feed_source_bytes_total{rank="0",source="/data"} 2.0',
        'flowos_feed_source_bytes_total{rank="1",source="/data"} 2.0',
    ]
    assert lines[-3] == "# TYPE flowos_feed_ready gauge"


def test_all_numbers_of_the_stats_are_metrics() -> None:
    numbers = [field.name for field in fields(Stats) if field.name != "complaint"]
    found = re.findall(r"^# TYPE flowos_feed_(\w+?)(?:_total)? ", text_of(), re.MULTILINE)
    assert found == numbers


def test_whatever_a_label_holds_a_line_stays_a_line() -> None:
    text = text_of(Counted('a "quoted"\nback\\slash'))
    assert r'source="a \"quoted\"\nback\\slash"' in text
    assert all(LINE.fullmatch(line) for line in text.splitlines())
