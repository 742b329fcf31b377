"""The schema of what is written as JSON: of each noun its words, and of tuples how many items."""

from dataclasses import dataclass

from flowos.model import Cache, MachineKind, schema_of


@dataclass(frozen=True)
class Tuples:
    """Of several lengths.

    Two lines.
    """

    one: tuple[int]
    two: tuple[int, str]
    many: tuple[int, ...]


def test_a_noun_is_described_by_its_own_words() -> None:
    kind = schema_of(MachineKind)["$defs"]["MachineKind"]["description"]
    assert kind.startswith("Machines that are expected to give the same numbers. cpus: ")
    tuples = schema_of(Tuples)["$defs"]["Tuples"]["description"]
    assert tuples == "Of several lengths.\n\nTwo lines."
    assert schema_of(Cache)["$defs"]["Cache"]["description"] == ""  # has none


def test_a_tuple_says_how_many_items_it_has() -> None:
    fields = schema_of(Tuples)["$defs"]["Tuples"]["properties"]
    integer, text = {"type": "integer"}, {"type": "string"}
    assert fields["one"] == {
        "type": "array",
        "prefixItems": [integer],
        "minItems": 1,
        "maxItems": 1,
    }
    assert fields["two"]["prefixItems"] == [integer, text]
    assert (fields["two"]["minItems"], fields["two"]["maxItems"]) == (2, 2)
    assert fields["many"] == {"type": "array", "items": integer}
