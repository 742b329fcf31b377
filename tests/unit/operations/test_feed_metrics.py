"""Metrics of feeds, as Prometheus reads them."""

import re
from dataclasses import dataclass, fields
from typing import cast

from prometheus_client import CollectorRegistry, generate_latest

from flowos.feeder import STAGES, Feed, FeedStage, Stats
from flowos.operations.feed import FeedCollector

STAGED = tuple(FeedStage(name=name, seconds=at, samples=10 * at) for at, name in enumerate(STAGES))
PLAIN = [field for field in fields(Stats) if field.name != "stages"]
STATS = Stats(**{field.name: field.type("2") for field in PLAIN}, stages=STAGED)  # type: ignore[operator]
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
    assert lines[lines.index("# TYPE flowos_feed_ready gauge") - 1].startswith("# HELP")


def test_all_numbers_of_the_stats_are_metrics() -> None:
    numbers = {field.name for field in PLAIN if field.name != "complaint"}
    numbers |= {f"stage_{field.name}" for field in fields(FeedStage) if field.name != "name"}
    found = re.findall(r"^# TYPE flowos_feed_(\w+?)(?:_total)? ", text_of(), re.MULTILINE)
    assert len(found) == len(set(found))
    assert set(found) == numbers


def test_each_stage_is_a_label_of_counters() -> None:
    lines = text_of(Counted("/data", 3)).splitlines()
    assert "# TYPE flowos_feed_stage_seconds_total counter" in lines
    for at, name in enumerate(STAGES):
        labels = f'rank="3",source="/data",stage="{name}"'
        assert f"flowos_feed_stage_seconds_total{{{labels}}} {at:.1f}" in lines
        assert f"flowos_feed_stage_samples_total{{{labels}}} {10 * at:.1f}" in lines


def test_whatever_a_label_holds_a_line_stays_a_line() -> None:
    text = text_of(Counted('a "quoted"\nback\\slash'))
    assert r'source="a \"quoted\"\nback\\slash"' in text
    assert all(LINE.fullmatch(line) for line in text.splitlines())
