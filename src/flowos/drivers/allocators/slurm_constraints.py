"""Why no nodes of a partition are as a pool's `constraint` or its `gres` say.

Slurm itself says that a specification is invalid, or not available, and not of which key it is.
"""

import re
from collections.abc import Callable, Collection, Mapping

from flowos.drivers._allocators import nearest, read_amount
from flowos.drivers._slurm_values import read_gres, read_hosts
from flowos.model import Argv, Ask, NodeInfo, Pool, counted

_OPERATORS, _GROUP = r"[&|,()\[\]]", re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_COUNT = re.compile(r"\*\d*")
_FEATURES, _GRES = "%N|%f", "%N|%G"
_TYPED = re.compile(r"(?P<type>\w+:(?!\d+[KMGTP]?$)[^:]+)(?::(?P<count>\w+))?")
_MET, _UNMET = "\x01", "\x00"
"""Of a group in brackets; a pool's constraint has no such characters."""


def available_words() -> Argv:
    """Of all partitions, those too that are hidden: a node comes once for each."""
    return ("sinfo", "--all", "--noheader", "--Node", f"--format={_FEATURES}")


def read_available(text: str) -> Mapping[str, tuple[str, ...]]:
    """Of `available_words`: the features that each node has, or may be booted into."""
    rows = (line.split("|") for line in text.splitlines())
    return {
        name: () if features in ("(null)", "") else tuple(features.split(","))
        for names, features in (row for row in rows if len(row) == 2)
        for name in read_hosts(names)
    }


def refusal_of_constraint(
    pool: Pool,
    ask: Ask,
    partition: str,
    nodes: Collection[str],
    known: Mapping[str, Collection[str]],
) -> str:
    """Why too few of these nodes of a partition are as it says, or "". known: of all the cluster's.

    Slurm refuses a constraint, also one with `|`, if the cluster has no such feature as one of its
    names.
    """
    if not pool.constraint:
        return ""
    if re.search(r"[()\[\]]", _without_groups(pool.constraint, bool)):
        return f"constraint={pool.constraint!r}: its brackets do not match"
    of_nodes = {name: known[name] for name in nodes if name in known}
    there = sorted({feature for features in of_nodes.values() for feature in features})
    everywhere = {feature for features in known.values() for feature in features}
    names = _names(pool.constraint)
    unknown = next((name for name in names if name not in everywhere), "")
    complaint = _none_has(pool.constraint, unknown, partition) if unknown else ""
    complaint = complaint or _too_few(pool.constraint, ask, partition, of_nodes.values())
    if not complaint:
        return ""
    missing = next((name for name in names if name not in there), "")
    has = f"its nodes have {', '.join(there) or 'no features'}"
    words = (f"constraint={pool.constraint!r}: {complaint}", has, nearest(missing, there))
    return "; ".join(filter(None, words))


def _names(constraint: str) -> list[str]:
    return [name for name in re.split(_OPERATORS, _COUNT.sub("", constraint)) if name]


def _none_has(constraint: str, name: str, partition: str) -> str:
    it = "it" if name == constraint else repr(name)
    return f"no node of partition {partition!r} has {it}"


def _too_few(
    constraint: str, ask: Ask, partition: str, of_nodes: Collection[Collection[str]]
) -> str:
    """With counts, as in `a*2&b*1`, each name may be another node's."""
    if "*" in constraint:
        there = {feature for features in of_nodes for feature in features}
        met = _may_be_met(constraint, there.__contains__)
        return "" if met else f"no nodes of partition {partition!r} meet it"
    have = sum(_may_be_met(constraint, features.__contains__) for features in of_nodes)
    if have >= ask.nodes:
        return ""
    if have:
        asked = f"{counted(ask.nodes, 'node')} asked for"
        return f"{asked}, {have} of {len(of_nodes)} of partition {partition!r} {_meet(have)} it"
    if constraint in _names(constraint):
        return _none_has(constraint, constraint, partition)
    return f"no node of partition {partition!r} meets it"


def _meet(count: int) -> str:
    return "meets" if count == 1 else "meet"


def _may_be_met(constraint: str, has: Callable[[str], bool]) -> bool:
    """False where it cannot be, by whatever rule Slurm reads it: where `&` and `|` stand side by
    side any of the names will do."""
    return _is_level_met(_without_groups(constraint, has), has)


def _without_groups(constraint: str, has: Callable[[str], bool]) -> str:
    """In the place of each whether it is met."""
    left = _COUNT.sub("", constraint)
    while group := _GROUP.search(left):
        met = _MET if _is_level_met(group[1], has) else _UNMET
        left = left[: group.start()] + met + left[group.end() :]
    return left


def _is_level_met(level: str, has: Callable[[str], bool]) -> bool:
    met = [name in ("", _MET) or has(name) for name in re.split(_OPERATORS, level)]
    return any(met) if "|" in level else all(met)


def refusal_of_gres(pool: Pool, partition: str, nodes: Collection[NodeInfo]) -> str:
    """Why its `gres` names what no node of a partition has, or ""; GPUs are counted elsewhere."""
    there = sorted({name for node in nodes for name, _ in node.devices})
    missing = next((name for name in read_gres(pool.gres) if name not in ("gpu", *there)), "")
    if not missing:
        return ""
    no = f"gres={pool.gres!r}: no node of partition {partition!r} has {missing!r}"
    has = f"its nodes have {', '.join(there) or 'none'}"
    return "; ".join(filter(None, (no, has, nearest(missing, there))))


def gres_words(partition: str) -> Argv:
    which = (f"--partition={partition}",) * bool(partition)
    return ("sinfo", "--noheader", "--Node", *which, f"--format={_GRES}")


def read_types(text: str) -> Mapping[str, Mapping[str, int]]:
    """Of `gres_words`: of each node, how many it has of each NAME:TYPE."""
    rows = (line.split("|", 1) for line in text.splitlines())
    return {
        name: _types(gres)
        for names, gres in (row for row in rows if len(row) == 2)
        for name in read_hosts(names)
    }


def _types(gres: str) -> dict[str, int]:
    """Of `gpu:a100:4(S:0-1),fpga:1,bandwidth:lustre:no_consume:4G`."""
    found: dict[str, int] = {}
    for one in re.sub(r"\([^()]*\)|:no_consume\b", "", gres).split(","):
        if match := _TYPED.fullmatch(one.strip()):
            has = found.get(match["type"], 0)
            found[match["type"]] = has + int(read_amount(match["count"] or "1") or 0)
    return found


def names_type(pool: Pool) -> bool:
    """Whether its generic resources are of a type, which Slurm is asked about by `gres_words`."""
    return bool(_types(pool.gres))


def refusal_of_types(
    pool: Pool, ask: Ask, partition: str, nodes: Mapping[str, Mapping[str, int]]
) -> str:
    """Why too few nodes of a partition have the types that its `gres` names, or ""."""
    there = sorted({type for has in nodes.values() for type in has})
    for type, count in _types(pool.gres).items():
        have = sum(has.get(type, 0) >= count for has in nodes.values())
        if have < ask.nodes:
            asked, of = f"{counted(ask.nodes, 'node')} asked for", f"partition {partition!r}"
            few = f"{asked}, {have} of {len(nodes)} of {of} {_have(have)} {count} {type}"
            why = few if type in there else f"no node of {of} has {type!r}"
            has = f"its nodes have {', '.join(there) or 'no types'}"
            near = "" if type in there else nearest(type, there)
            return "; ".join(filter(None, (f"gres={pool.gres!r}: {why}", has, near)))
    return ""


def _have(count: int) -> str:
    return "has" if count == 1 else "have"
