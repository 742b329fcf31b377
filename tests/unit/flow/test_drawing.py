from xml.etree import ElementTree

import flowos.model as m
from flowos.model import Flow, flow_input, flow_output, task

SVG = "{http://www.w3.org/2000/svg}"


@task
def add(x: int, y: int) -> int:
    return x + y


@task(name='say "<hi>" & \\')
def say(x: object, words: str) -> tuple[object, str]:
    return x, words


def drawn() -> Flow:
    a, b = flow_input("a", m.int64), flow_input("b", m.int64)
    early = add(a, 1)
    late = add(add(add(early, 2), b), early)
    one, two = say(late, "a long text that is cut after some letters")
    return flow_output(one, two, a, name="drawn")


def test_a_flow_prints_its_inputs_tasks_and_outputs() -> None:
    assert str(drawn()) == "\n".join(
        [
            "flow drawn",
            "  input   a: int64",
            "  input   b: int64",
            "  task    add(a, 1) -> int64",
            "  task    add#2(add, 2) -> int64",
            "  task    add#3(add#2, b) -> int64",
            "  task    add#4(add#3, add) -> int64",
            '  task    say "<hi>" & \\(add#4, \'a long text that is cut af...) -> any_, str_',
            '  output  say "<hi>" & \\.out1: any_',
            '  output  say "<hi>" & \\.out2: str_',
            "  output  a: int64",
        ]
    )


def test_the_dot_drawing_has_every_node_and_edge() -> None:
    lines = drawn().dot().splitlines()
    assert lines[0] == 'digraph "drawn" {'
    assert sum(" -> n" in line for line in lines) == 10
    assert sum("label=" in line for line in lines) == 10
    assert any('label="say \\"<hi>\\" & \\\\"' in line for line in lines)


def boxes(svg: str) -> list[tuple[str, float, float, float, float]]:
    """Label, left, top, right, bottom of each box."""
    found = []
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        rect, label = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        if rect is not None and label is not None:
            x, y = float(rect.get("x", "")), float(rect.get("y", ""))
            wide, high = float(rect.get("width", "")), float(rect.get("height", ""))
            found.append((label.text or "", x, y, x + wide, y + high))
    return found


def test_the_svg_is_well_formed_and_needs_nothing_else() -> None:
    svg = drawn().svg()
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert svg.count("http") == 1
    assert len(root.findall(f".//{SVG}path")) == 10
    assert sorted(b[0] for b in boxes(svg))[:4] == ["a", "a", "add", "add#2"]


def test_boxes_do_not_overlap_and_lie_within_the_drawing() -> None:
    svg = drawn().svg()
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    found = boxes(svg)
    for i, (_, left, top, right, bottom) in enumerate(found):
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        for _, left2, top2, right2, bottom2 in found[i + 1 :]:
            assert right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top


def test_a_task_is_drawn_below_what_it_depends_on() -> None:
    top = {label: y for label, _, y, _, _ in boxes(drawn().svg())}
    assert top["b"] < top["add#3"] < top["add#4"]
    assert top["add"] < top["add#2"] < top["add#3"]


def test_a_notebook_draws_a_flow_and_lists_a_large_one() -> None:
    assert (drawn()._repr_html_() or "").startswith("<svg")
    port = flow_input("a", m.int64)
    for _ in range(300):
        port = add(port, 1)
    assert flow_output(port)._repr_html_() is None


def test_a_deep_and_a_wide_flow_can_be_drawn() -> None:
    a = flow_input("a", m.int64)
    port = a
    for _ in range(2000):
        port = add(port, 1)
    assert str(flow_output(port)).count("\n") == 2002
    wide = flow_output(*(add(a, i) for i in range(100)))
    assert len(boxes(wide.svg())) == 201


def test_a_drawing_grows_as_the_flow_does() -> None:
    """Also where every task of a long chain reads the same input, and each an input of its own."""

    def chain(length: int, inputs: int) -> int:
        ports = [flow_input(f"i{k}", m.int64) for k in range(inputs)]
        port = ports[0]
        for k in range(length):
            port = add(port, ports[k % inputs])
        return len(flow_output(port).svg())

    assert chain(800, 1) < 2.2 * chain(400, 1)
    assert chain(800, 800) < 2.2 * chain(400, 400)
