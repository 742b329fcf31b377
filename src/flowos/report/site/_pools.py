"""The pools of flowos.toml."""

from collections.abc import Iterator, Sequence

from flowos.model import Pool, SliceRecord, counted
from flowos.report._storage_text import tier_words
from flowos.report.page._marks import seconds_of
from flowos.report.page._markup import Markup, join, tag
from flowos.report.site._frame import section, site_page
from flowos.report.site._slices import held_nodes

_TITLES = {
    "qos": "Quality of service",
    "constraint": "Features",
    "gres": "Generic resources",
    "pe": "Parallel environment",
    "shared": "Shared folder",
    "scratch": "Own storage of nodes",
}
"""Of keys of settings that say more in other words."""

_PROMISES = {"shared": "It promises", "scratch": "Each promises"}


def pools_html(pools: Sequence[Pool], file: str, slices: Sequence[SliceRecord] = ()) -> str:
    """file: that they are from; "" if there is none. slices: that are not over."""
    deck = f"{counted(len(pools), 'pool')} of {file}." if file else "Without a flowos.toml: one."
    found = (
        _pool(number, pool, [each for each in slices if each.pool == pool.name])
        for number, pool in enumerate(pools)
    )
    return site_page("/pools", "Pools", deck, *found)


def _pool(number: int, pool: Pool, slices: Sequence[SliceRecord]) -> Markup:
    facts = (("Now", _now(slices)), *_facts(pool))
    rows = [join(tag("dt", what), tag("dd", words)) for what, words in facts if words]
    return section(f"pool-{number}", pool.name, tag("dl", *rows, class_="facts"))


def _now(slices: Sequence[SliceRecord]) -> str:
    """What this user has of it."""
    held = [each for each in slices if each.state == "held"]
    nodes = counted(held_nodes(held), "node")
    words = [f"{nodes} held in {counted(len(held), 'slice')}"] if held else []
    waiting = len(slices) - len(held)
    words += [f"{counted(waiting, 'slice')} waiting"] if waiting else []
    return ", ".join(words)


def _facts(pool: Pool) -> tuple[tuple[str, str], ...]:
    price, per_hour = pool.price, ""
    if price is not None and price.per_node_hour is not None:
        per_hour = f"{price.per_node_hour:g} {price.currency} a node and hour"
    return (
        ("Kind", pool.kind),
        ("Nodes", str(pool.nodes)),
        ("Cores of each", str(pool.cores or "all")),
        ("Held at most for", seconds_of(pool.max_seconds) if pool.max_seconds else ""),
        ("Environment", pool.env),
        ("Size", ", ".join(filter(None, (pool.size, pool.region, "spot" * pool.spot)))),
        ("Price", per_hour),
        *(fact for name, value in pool.of_its_kind for fact in _of_its_kind(pool, name, value)),
    )


def _of_its_kind(pool: Pool, name: str, value: str) -> Iterator[tuple[str, str]]:
    yield _TITLES.get(name, name.capitalize()), value
    if name in _PROMISES and (tier := pool.tier(name)):
        yield _PROMISES[name], tier_words(tier)
