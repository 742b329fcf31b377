"""The changes that `mutants.py` tries: one number or operator of a source, by cosmic-ray."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.provider import OperatorProvider

OPERATORS = re.compile(
    r"BinaryOperator_((Add|Sub|Mul|Div)_(Add|Sub|Mul|Div)|(FloorDiv|Mod|Pow)_Mul)$"
    r"|ComparisonOperator_(Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is|Lt_(LtE|GtE)|LtE_(Lt|Gt)"
    r"|Gt_(GtE|LtE)|GtE_(Gt|Lt))$"
    r"|UnaryOperator_Delete_|AddNot|True|With(And|Or|Break|Continue)|Number|Exception|ZeroIteration"
    r"|RemoveDecorator"
)
"""One of each kind: that others, such as shifts of floats, are noticed says nothing."""
OF_TYPES = re.compile(r"@(overload|dataclass|staticmethod|final)|TYPE_CHECKING|Literal\[")
"""Lines at which mypy looks."""
LARGE = re.compile(r"\d{4,}(\.\d*)?|[\d.]+e\d+")
"""Numbers of which one more or less says nothing."""


@dataclass(frozen=True)
class Mutant:
    """A module's source with one change, and the line that it is in."""

    line: int
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    lines, tree, meaning = source.splitlines(), get_ast(source), ast.dump(ast.parse(source))
    typed = lines_of_protocols(source)
    provider = OperatorProvider()
    for operator in (provider[name]() for name in provider if OPERATORS.search(name)):
        nodes = ((n, at) for n in ast_nodes(tree) for at, _ in operator.mutation_positions(n))
        for occurrence, (node, (line, _)) in enumerate(nodes):
            if (
                line in typed
                or node.parent.type == "parameters"  # the * before names
                or node.parent.get_code().strip() == "strict=True"
                or OF_TYPES.search(lines[line - 1])
                or LARGE.fullmatch(node.get_code().strip())
            ):
                continue
            try:
                changed = mutate_code(source, operator, occurrence)
            except AttributeError:  # cosmic-ray 8 cannot replace an exception with a dotted name
                continue
            if changed and has_other(changed, meaning):
                yield Mutant(line, changed)


def lines_of_protocols(source: str) -> frozenset[int]:
    """They too are for mypy alone."""
    classes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef))
    return frozenset(
        line
        for node in classes
        if any("Protocol" in ast.unparse(base) for base in node.bases)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    )


def has_other(source: str, meaning: str) -> bool:
    try:
        return ast.dump(ast.parse(source)) != meaning
    except SyntaxError:
        return False
