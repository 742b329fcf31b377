"""Draws a graph as Graphviz dot and as SVG: layers from inputs down to outputs."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Literal

from flowos._dataclasses import dataclass

Kind = Literal["input", "task", "control", "output", "bend"]

_FILL: Mapping[Kind, str] = {
    "input": "#d8e6f5",
    "task": "#f2efe6",
    "control": "#e6dcf2",
    "output": "#dcefd8",
}
_LETTER, _HEIGHT, _LAYER, _GAP, _MARGIN = 7.3, 28.0, 66.0, 22.0, 12.0
_BULGE = 40.0
_BOXES = ("task", "control")
_SWEEPS = 6
_LONGEST_BENT = 16
"""Edges over more layers run straight, behind the boxes.

In a long chain that reads one input at every step, bends at each layer would outnumber all else.
"""


@dataclass(frozen=True, slots=True)
class DrawnNode:
    kind: Kind
    label: str
    about: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in topological order; edges by position. backs: from the end of a loop to its begin."""

    name: str
    nodes: tuple[DrawnNode, ...]
    edges: tuple[tuple[int, int], ...]
    backs: tuple[tuple[int, int], ...] = ()


def dot(graph: Graph) -> str:
    """For `dot -Tsvg`: inputs and outputs as ellipses, tasks as boxes."""
    lines = [f"digraph {_quoted(graph.name)} {{", "  rankdir=TB;"]
    for i, node in enumerate(graph.nodes):
        shape = "box" if node.kind in _BOXES else "ellipse"
        words = f"label={_quoted(node.label)}, shape={shape}, tooltip={_quoted(node.about)}"
        lines.append(f"  n{i} [{words}];")
    lines += [f"  n{a} -> n{b};" for a, b in graph.edges]
    lines += [f"  n{a} -> n{b} [style=dashed, constraint=false];" for a, b in graph.backs]
    return "\n".join([*lines, "}"])


def svg(graph: Graph) -> str:
    """Self-contained, and legible on light and dark pages."""
    plan = _Layout(graph)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{plan.width:.0f}" '
        f'height="{plan.height:.0f}" viewBox="0 0 {plan.width:.0f} {plan.height:.0f}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>flow {escape(graph.name)}</title>",
        '<g fill="none" stroke="#808080" stroke-width="1.4">',
        *(f'<path d="{path}"/>' for path in plan.paths()),
        *(f'<path d="{path}" stroke-dasharray="5 4"/>' for path in plan.ways_back()),
        "</g>",
        *(_box(node, plan.x[i], plan.y(i)) for i, node in enumerate(graph.nodes)),
        "</svg>",
    ]
    return "\n".join(parts)


def shortened(words: str, max_chars: int = 30) -> str:
    return words if len(words) <= max_chars else f"{words[: max_chars - 3]}..."


def _quoted(words: str) -> str:
    safe = words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{safe}"'


def _box(node: DrawnNode, x: float, y: float) -> str:
    wide = _width(node)
    round_ = 4 if node.kind in _BOXES else 14
    return (
        f"<g><title>{escape(node.about)}</title>"
        f'<rect x="{x - wide / 2:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{_HEIGHT:.0f}" '
        f'rx="{round_}" fill="{_FILL[node.kind]}" stroke="#808080"/>'
        f'<text x="{x:.1f}" y="{y + 18.5:.1f}" text-anchor="middle" fill="#1c1c1c">'
        f"{escape(shortened(node.label))}</text></g>"
    )


def _width(node: DrawnNode) -> float:
    return 2.0 if node.kind == "bend" else _LETTER * min(len(node.label), 30) + 20


class _Layout:
    """Layers by longest path, edges bent at each layer, order by barycentres.

    The method of Sugiyama, Tagawa, Toda (1981), with a fixed number of sweeps.
    """

    def __init__(self, graph: Graph) -> None:
        self.nodes = list(graph.nodes)
        self.backs = graph.backs
        self.layer = _layers(graph)
        self.chains = [self._bent(a, b) for a, b in graph.edges]
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer, default=0) + 1)]
        for i, layer in enumerate(self.layer):
            self.rows[layer].append(i)
        self._order()
        self.x: dict[int, float] = {}
        self.width = self._place()
        self.height = _LAYER * (len(self.rows) - 1) + _HEIGHT + 2 * _MARGIN

    def y(self, i: int) -> float:
        return _MARGIN + _LAYER * self.layer[i]

    def paths(self) -> list[str]:
        return [self._path(chain) for chain in self.chains]

    def ways_back(self) -> list[str]:
        """On the right side of the boxes."""
        return [self._way_back(a, b) for a, b in self.backs]

    def _way_back(self, a: int, b: int) -> str:
        x0, x1 = (self.x[n] + _width(self.nodes[n]) / 2 for n in (a, b))
        y0, y1 = (self.y(n) + _HEIGHT / 2 for n in (a, b))
        far = max(x0, x1) + _BULGE
        return f"M{x0:.1f},{y0:.1f}C{far:.1f},{y0:.1f} {far:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"

    def _bent(self, a: int, b: int) -> list[int]:
        chain = [a]
        if self.layer[b] - self.layer[a] > _LONGEST_BENT:
            return [a, b]
        for layer in range(self.layer[a] + 1, self.layer[b]):
            chain.append(len(self.nodes))
            self.nodes.append(DrawnNode("bend", "", ""))
            self.layer.append(layer)
        return [*chain, b]

    def _order(self) -> None:
        above: dict[int, list[int]] = {}
        below: dict[int, list[int]] = {}
        for chain in self.chains:
            for a, b in pairwise(chain):
                if self.layer[b] == self.layer[a] + 1:
                    below.setdefault(a, []).append(b)
                    above.setdefault(b, []).append(a)
        place = {n: i for row in self.rows for i, n in enumerate(row)}
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            near = above if down else below
            for row in self.rows[1:] if down else self.rows[-2::-1]:
                row.sort(key=lambda n, near=near: _mean(near.get(n), place, place[n]))  # type: ignore[misc]
                place.update((n, i) for i, n in enumerate(row))

    def _place(self) -> float:
        wide = [sum(_width(self.nodes[n]) + _GAP for n in row) - _GAP for row in self.rows]
        full = max(wide, default=0.0) + 2 * (_MARGIN + (_BULGE if self.backs else 0.0))
        for row, taken in zip(self.rows, wide, strict=True):
            left = (full - taken) / 2
            for n in row:
                own = _width(self.nodes[n])
                self.x[n] = left + own / 2
                left += own + _GAP
        return full

    def _path(self, chain: Sequence[int]) -> str:
        first = chain[0]
        words = [f"M{self.x[first]:.1f},{self.y(first) + _HEIGHT:.1f}"]
        bottom = self.y(first) + _HEIGHT
        for before, n in pairwise(chain):
            top = self.y(n)
            half = (bottom + top) / 2
            x0, x1 = self.x[before], self.x[n]
            words.append(f"C{x0:.1f},{half:.1f} {x1:.1f},{half:.1f} {x1:.1f},{top:.1f}")
            bottom = top
            if self.nodes[n].kind == "bend":
                bottom = top + _HEIGHT
                words.append(f"V{bottom:.1f}")
        return "".join(words)


def _layers(graph: Graph) -> list[int]:
    """Layer of each node: below all its dependencies; inputs right above their first use."""
    layer = [0] * len(graph.nodes)
    for a, b in sorted(graph.edges, key=lambda e: e[1]):
        layer[b] = max(layer[b], layer[a] + 1)
    uses: dict[int, list[int]] = {}
    for a, b in graph.edges:
        uses.setdefault(a, []).append(layer[b])
    for i, node in enumerate(graph.nodes):
        if node.kind == "input":
            layer[i] = min(uses[i]) - 1
    last = max(layer, default=0)
    return [last if n.kind == "output" else x for n, x in zip(graph.nodes, layer, strict=True)]


def _mean(near: Sequence[int] | None, place: Mapping[int, int], own: int) -> float:
    return sum(place[n] for n in near) / len(near) if near else float(own)
