"""A flow as text, and as a graph to be drawn; what conds and loops run is shown within them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flowos.model._drawing import DrawnNode, Graph

Named = Any
"""A call of a flow. Calls, ports and flows are those of `_graph`, which imports this file."""


def flow_text(flow: Any) -> str:
    """One line per input, task and output, in an executable order."""
    return "\n".join([f"flow {flow.name}", *_lines(flow, "  ")])


def _lines(flow: Any, indent: str) -> Iterator[str]:
    names = _call_names(flow)
    for port in flow.inputs:
        yield f"{indent}input   {port.spec}"
    for call in flow.calls:
        given = ", ".join(argument.text(names) for argument in call.arguments)
        types = ", ".join(str(p.type) for p in call.task.outputs)
        yield f"{indent}task    {names[call]}({given}) -> {types}"
        for about, inner in _shown_inside(call):
            yield f"{indent}  {about}:"
            yield from _lines(inner, f"{indent}    ")
    for port in flow.outputs:
        yield f"{indent}output  {port.text(names)}: {port.spec.type}"


def _shown_inside(call: Any) -> list[tuple[str, Any]]:
    """(words, flow) of what a cond or a loop runs."""
    body = call.task.body
    return list(zip(body.about(), body.flows, strict=True)) if hasattr(body, "about") else []


def _call_names(flow: Any) -> dict[Named, str]:
    """Unique names of the calls: add, add#2, ... as in error messages."""
    counts: dict[str, int] = {}
    names = {}
    for call in flow.calls:
        name = call.task.name
        count = counts[name] = counts.get(name, 0) + 1
        names[call] = name if count == 1 else f"{name}#{count}"
    return names


def flow_graph(flow: Any) -> Graph:
    view = _Graph()
    ports = {port: view.add("input", port.spec.name, str(port.spec)) for port in flow.inputs}
    names = _call_names(flow)
    at = view.add_calls(flow, ports, names)
    for port in flow.outputs:
        place = view.add("output", port.text(names), f"output: {port.spec.type}")
        view.edges[at[port.source], place] = None
    return Graph(flow.name, tuple(view.nodes), tuple(view.edges), tuple(view.backs))


class _Graph:
    """Nodes and edges found so far."""

    def __init__(self) -> None:
        self.nodes: list[DrawnNode] = []
        self.edges: dict[tuple[int, int], None] = {}
        self.backs: list[tuple[int, int]] = []

    def add(self, kind: Any, label: str, about: str) -> int:
        self.nodes.append(DrawnNode(kind, label, about))
        return len(self.nodes) - 1

    def add_calls(
        self, flow: Any, inputs: Mapping[Any, int], names: Mapping[Named, str]
    ) -> dict[Any, int]:
        """Where each of the flow's inputs and calls is."""
        at = dict(inputs)
        for call in flow.calls:
            inside = _shown_inside(call)
            kind = "control" if inside else "task"
            place = at[call] = self.add(kind, names[call], str(call.task))
            for argument in call.arguments:
                if argument.source is not None:
                    self.edges[at[argument.source], place] = None
            if inside:
                at[call] = self._add_inside(place, names[call], inside)
        return at

    def _add_inside(self, first: int, name: str, inside: Sequence[tuple[str, Any]]) -> int:
        """What a cond or a loop runs, from its box down to the one at its end."""
        sources: list[int] = []
        for about, flow in inside:
            before = f"{about}: " if len(inside) > 1 else ""
            names = {call: before + name for call, name in _call_names(flow).items()}
            at = self.add_calls(flow, dict.fromkeys(flow.inputs, first), names)
            sources += [at[port.source] for port in flow.outputs]
        words = inside[0][0] if len(inside) == 1 else "or".join(f" {w} " for w, _ in inside).strip()
        last = self.add("control", words, f"end of {name}")
        self.edges.update(dict.fromkeys((source, last) for source in sources))
        if len(inside) == 1:
            self.backs.append((last, first))
        return last
