"""Sizes of arrays that do not fit into the caches."""

from flowos.model import Facts

CACHES_PER_ARRAY = 4
MIN_ARRAY_BYTES = 64 << 20
MEMORY_SHARE = 0.5


def last_cache_bytes(facts: Facts) -> int:
    """Total size of the last-level caches of our cpus; 0 if unknown."""
    ours = set(facts.allowed)
    near = [c for c in facts.caches if c.kind != "instruction" and ours & set(c.cpus)]
    last = max((c.level for c in near), default=0)
    return sum(c.size_bytes for c in near if c.level == last)


def elements_for(facts: Facts) -> int:
    """Doubles per array: four times the last-level caches, at most what fits half the memory."""
    size = max(MIN_ARRAY_BYTES, CACHES_PER_ARRAY * last_cache_bytes(facts))
    most = int((facts.usable_memory_bytes or 6 * size) * MEMORY_SHARE / 3)
    return min(size, most) // 8 // 64 * 64
