"""Sizes of machines: what they promise, and the tables of flowos.toml that define more of them."""

import pytest

from flowos.model import (
    NodeInfo,
    Pool,
    SettingsError,
    VmSize,
    read_settings,
    settings_schema,
    size_fields,
)

SIZE = VmSize(name="hb", vcpus=120, memory_bytes=1000, gpus=2)


def node(cores: int = 120, memory_bytes: int = 1000, gpus: int = 2) -> NodeInfo:
    return NodeInfo(name="n", cores=cores, memory_bytes=memory_bytes, gpus=gpus)


def broken(size: VmSize, node: NodeInfo) -> list[str]:
    return [each.what for each in size.promises(node) if not each.is_kept]


@pytest.mark.parametrize(
    ("seen", "what"),
    [
        (node(), []),
        (node(cores=121, memory_bytes=2000, gpus=3), []),
        (node(cores=119), ["vCPUs"]),
        (node(memory_bytes=900), []),  # what firmware and kernel keep
        (node(memory_bytes=899), ["bytes of memory"]),
        (node(gpus=1), ["GPUs"]),
        (node(gpus=0), ["GPUs"]),
        (node(memory_bytes=0), []),  # not known
    ],
)
def test_a_node_keeps_the_promises_of_its_size(seen: NodeInfo, what: list[str]) -> None:
    assert broken(SIZE, seen) == what


def test_a_size_promises_only_what_is_known_of_it() -> None:
    assert VmSize(name="x", price=1.0).promises(node()) == ()
    (cores,) = VmSize(name="x", vcpus=4).promises(node())
    assert (cores.what, cores.promised, cores.seen) == ("vCPUs", 4, 120)


def test_a_table_of_the_settings_is_a_size() -> None:
    text = """
        [sizes."hpc7a.96xlarge"]
        vcpus = 192
        memory_bytes = 824_633_720_832
        price = 7.2
        spot = 2
        [pools.hb]
        size = "hpc7a.96xlarge"
        region = "us-east-2"
        spot = true
    """
    found = read_settings(text, "flowos.toml")
    assert found.sizes == (
        VmSize(name="hpc7a.96xlarge", vcpus=192, memory_bytes=768 << 30, price=7.2, spot=2.0),
    )
    assert found.pools[1] == Pool(name="hb", size="hpc7a.96xlarge", region="us-east-2", spot=True)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[sizes.a]\nvcpu = 1", ":2: sizes.a.vcpu: no such key; did you mean 'vcpus'?"),
        ("[sizes.a]\nprice = -1", ":2: sizes.a.price: -1.0: expected 0 or more"),
        ("[sizes.a]\nprice = inf", ":2: sizes.a.price: inf: expected 0 or more"),
        ("[sizes.a]\nspot = nan", ":2: sizes.a.spot: nan: expected 0 or more"),
        ("[sizes.a]\nprice = {per_node_hour = 1}", ":2: sizes.a.price: number expected, got"),
        ('[pools.b]\n[sizes."a.b"]\ngpus = "x"', ":3: sizes.'a.b'.gpus: int expected, got 'x'"),
        ('[sizes."a.b"]\n\ngpus = -1', ":3: sizes.'a.b'.gpus: -1: expected 0 or more"),
        ("[sizes.a.b]\ngpus = 1", "sizes.a.b: no such key; known are cloud, vcpus"),
        ("sizes = 1", ":1: sizes: 1: a table is expected, as [sizes]"),
        ("[pools.a]\nregion = 'r'", ":2: pools.a.region: it is of a size, which is not given"),
        ("[pools.a]\nspot = true", ":2: pools.a.spot: it is of a size, which is not given"),
        ("[pools.a]\nsize = 3", ":2: pools.a.size: str expected, got 3"),
    ],
)
def test_a_mistake_is_named_by_its_line(text: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_settings(text, "flowos.toml")
    assert complaint in str(refused.value)


def test_the_schema_knows_the_keys_that_are_read() -> None:
    size = settings_schema()["$defs"]["VmSize"]
    assert set(size["properties"]) == {field.name for field in size_fields()}
    assert all(each["description"] for each in size["properties"].values())
