"""flowos.toml: every mistake is one line with file, line and key, and the nearest name."""

import math

import pytest

from flowos.model import (
    LOCAL,
    Ask,
    FakeStep,
    NodeInfo,
    Pool,
    Price,
    SettingsError,
    StorageTier,
    pool_fields,
    read_script,
    read_settings,
    settings_schema,
)
from flowos.model._settings_layers import _syntax


def read(text: str) -> tuple[Pool, ...]:
    return read_settings(text, "flowos.toml").pools


def test_an_empty_file_has_the_local_pool() -> None:
    assert read("") == (LOCAL,)


def test_a_pool_is_what_its_table_says() -> None:
    text = """
        [pools.gpu]
        kind = "fake"
        nodes = 4
        cores = 2
        max_seconds = 3600
        env = "mine@podman"
        price = {per_node_hour = 1.5, currency = "CHF"}
        script = ["wait 0.5 Priority; lose 1 after 2"]
    """
    assert read(text) == (
        LOCAL,
        Pool(
            name="gpu",
            kind="fake",
            nodes=4,
            cores=2,
            max_seconds=3600.0,
            env="mine@podman",
            price=Price(per_node_hour=1.5, currency="CHF"),
            script=("wait 0.5 Priority; lose 1 after 2",),
        ),
    )


def test_a_pool_of_a_cluster_is_what_its_table_says() -> None:
    text = """
        [pools.gpu]
        kind = "slurm"
        nodes = 4
        partition = "gpu"
        account = "physics"
        qos = "high"
        constraint = "icelake&nvme"
        gres = "gpu:a100:2,fpga"
        shared = "/home/me/flowos"
        scratch = "/local"
        shared_tier = {capacity_bytes = 100_000_000_000_000, read_bytes_per_second = 5e9}
        [pools.gpu.scratch_tier]
        write_bytes_per_second = 2_000_000_000
    """
    assert read(text)[1] == Pool(
        name="gpu",
        kind="slurm",
        nodes=4,
        partition="gpu",
        account="physics",
        qos="high",
        constraint="icelake&nvme",
        gres="gpu:a100:2,fpga",
        shared="/home/me/flowos",
        scratch="/local",
        shared_tier=StorageTier(capacity_bytes=10**14, read_bytes_per_second=5e9),
        scratch_tier=StorageTier(write_bytes_per_second=2e9),
    )


@pytest.mark.parametrize("kind", ["slurm", "fake"])
@pytest.mark.parametrize("none", ["none", "None", "NONE", "(null)", ""])
def test_generic_resources_may_be_none_as_slurm_has_it(kind: str, none: str) -> None:
    assert read(f"[pools.a]\nkind = '{kind}'\ngres = '{none}'") == read(
        f"[pools.a]\nkind = '{kind}'"
    )


def test_a_pool_of_grid_engine_has_a_queue_and_a_parallel_environment() -> None:
    text = """
        [pools.sge]
        kind = "sge"
        nodes = 2
        queue = "all.q"
        pe = "whole"
        scratch = "/local"
    """
    assert read(text)[1] == Pool(
        name="sge", kind="sge", nodes=2, queue="all.q", pe="whole", scratch="/local"
    )


def test_a_pool_tells_in_order_what_pools_of_some_kinds_alone_have() -> None:
    slurm = """
        [pools.a]
        kind = "slurm"
        scratch = "/own"
        shared = "/all"
        gres = "gpu"
        constraint = "c"
        qos = "q"
        account = "a"
        partition = "p"
    """
    grid = "[pools.a]\nkind = 'sge'\nnodes = 3\nshared = '/all'\npe = 'whole'\nqueue = 'all.q'"
    told = [" ".join(map("=".join, read(text)[-1].of_its_kind)) for text in (slurm, grid, "")]
    assert told == [
        "partition=p account=a qos=q constraint=c gres=gpu shared=/all scratch=/own",
        "queue=all.q pe=whole shared=/all",
        "",
    ]


def test_the_local_pool_may_be_bounded() -> None:
    assert read("[pools.local]\ncores = 1") == (Pool(name="local", cores=1),)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a = ", ":1: Invalid value"),
        ("\n[pools.gpu\n", ":2: Expected ']' at the end of a table declaration"),
        ("[pool.gpu]", ":1: pool: no such key; did you mean 'pools'?"),
        ("xyz = 1", ":1: xyz: no such key; known are pools, cloud"),
        ("pools = 3", ":1: pools: 3: a table is expected, as [pools]"),
        ("[pools]\ngpu = 1", ":2: pools.gpu: 1: a table is expected, as [pools.gpu]"),
        ("[[pools.gpu]]", ":1: pools.gpu: [{}]: a table is expected, as [pools.gpu]"),
        ("[pools.a]\n\nnodez = 4", ":3: pools.a.nodez: no such key; did you mean 'nodes'?"),
        ("[pools.a]\nname = 'b'", ":2: pools.a.name: no such key; known are kind, nodes, cores, "),
        (
            "[pools.a]\nkind = 'fak'",
            "kind: 'fak': one of local, fake, slurm, sge; did you mean 'fake'?",
        ),
        ("[pools.a]\nkind = ['fake']", ":2: pools.a.kind: ['fake']: one of local, fake, slurm"),
        ("[pools.a]\nnodes = '4'", ":2: pools.a.nodes: int expected, got '4'"),
        ("[pools.a]\ncores = true", ":2: pools.a.cores: int expected, got True"),
        ("[pools.a]\nnodes = 2", ":2: pools.a.nodes: a local pool has 1 node"),
        ("[pools.a]\nkind = 'fake'\nnodes = 0", ":3: pools.a.nodes: 0 is below 1"),
        (
            "[pools.a]\nkind = 'fake'\nnodes = 99999999999999999999",
            ":3: pools.a.nodes: 99999999999999999999 is above 65536",
        ),
        (
            "[pools.a]\nkind = 'fake'\ngres = 'gpu:99999999999999999999,fpga:1'",
            ":3: pools.a.gres: 99999999999999999999 is above 65536",
        ),
        (f"[pools.a]\nnodes = {'9' * 5000}", ": Exceeds the limit"),
        ("[pools.a]\nenv = ''", ":2: pools.a.env: it is empty: expected bare, or IMAGE"),
        ("[pools.a]\nmax_seconds = nan", ":2: pools.a.max_seconds: nan is not above 0"),
        ("[pools.a]\nmax_seconds = inf", ":2: pools.a.max_seconds: inf is not above 0, and below"),
        ("[pools.a]\nmax_seconds = 0", ":2: pools.a.max_seconds: 0.0 is not above 0"),
        ("[pools.a]\nscript = ['x']", ":2: pools.a.script: only a fake pool has one"),
        ("[pools.a]\nkind = 'fake'\nscript = [3]", ":3: pools.a.script: str expected, got 3"),
        ("[pools.a]\nkind = 'fake'\nscript = ['x']", ":3: pools.a.script: 'x': expected wait"),
        (
            '[pools.a]\nkind = "fake"\nscript = ["refuse \\u001b[31m"]',
            ":3: pools.a.script: 'refuse \\x1b[31m': expected printable characters",
        ),
        (
            "[pools.a]\nkind = 'fake'\nscript = ['wait 99999999999 Priority']",
            ":3: pools.a.script: 1e+11 s is not below 1e9",
        ),
        ("[pools.a]\nprice.currency = ''", ":2: pools.a.price.currency: '': expected 3 capital"),
        ("[sizes.a]\ncurrency = 'euro'", ":2: sizes.a.currency: 'euro': expected 3 capital let"),
        ("[pools.a]\nprice = {hour = 1}", ":2: pools.a.price.hour: no such key; known are per"),
        (
            "[pools.a.price]\nper_node_hour = -1",
            ":2: pools.a.price.per_node_hour: -1.0: expected 0 or more",
        ),
        (
            "[pools.a.price]\nper_node_hour = nan",
            ":2: pools.a.price.per_node_hour: nan: expected 0",
        ),
        ('[pools."a\\nb"]', ":1: pools.'a\\nb'.name: 'a\\nb': expected letters"),
        (
            '[pools.a]\nkind = "fake"\nscript = ["lose 2 after 1"]',
            "script: lose 2: its nodes are 1 to 1",
        ),
        ("[pools.'a b']\nnodes = 1", ":1: pools.'a b'.name: 'a b': expected letters"),
        ("[pools.b]\n\n[pools.'a b']\nnodes = 1", ":3: pools.'a b'.name: 'a b': expected letters"),
        ("[pools.'']", "name: '': expected letters"),
        ("pools.a.nodez = 4", ":1: pools.a.nodez: no such key"),
        ("[pools.a]\npartition = 'x'", ":2: pools.a.partition: only a pool of kind slurm has"),
        ("[pools.a]\nscratch = '/x'", ":2: pools.a.scratch: only a pool of kind slurm or sge has"),
        ("[pools.a]\nkind = 'sge'\npe = 'x'", ":1: pools.a.queue: an sge pool needs one"),
        ("[pools.a]\nkind = 'sge'\nqueue = 'x'", ":1: pools.a.pe: an sge pool needs one"),
        ("[pools.a]\nkind = 'slurm'\nqos = ' x'", ":3: pools.a.qos: ' x': expected printable"),
        ('[pools.a]\nkind = "slurm"\nqos = "a\\nb"', ":3: pools.a.qos: 'a\\nb': expected print"),
        ("[pools.a]\ngres = 'none'", ":2: pools.a.gres: only a pool of kind slurm or fake has"),
        ("[pools.a]\nkind = 'slurm'\ngres = 'none,gpu:'", ":3: pools.a.gres: 'none,gpu:': expec"),
        ("[pools.a]\nkind = 'slurm'\ngres = 'gpu:'", ":3: pools.a.gres: 'gpu:': expected NAME["),
        ("[pools.a]\nkind = 'slurm'\ngres = 'gpu:0'", ":3: pools.a.gres: 'gpu:0': expected NAM"),
        ("[pools.a]\nkind = 'slurm'\nshared = 'x'", ":3: pools.a.shared: 'x': expected an abs"),
        (
            "[pools.a]\nkind = 'slurm'\nshared_tier = {}",
            ":3: pools.a.shared_tier: it is of the folder shared, which is not given",
        ),
        (
            "[pools.a]\nkind = 'slurm'\nscratch = '/x'\nscratch_tier.capacity_bytes = 0",
            ":4: pools.a.scratch_tier.capacity_bytes: 0 is not above 0, and finite",
        ),
        (
            "[pools.a]\nkind = 'sge'\nqueue = 'q'\npe = 'p'\nshared = '/x'\n[pools.a.shared_tier]\n"
            "read_bytes_per_second = inf",
            ":7: pools.a.shared_tier.read_bytes_per_second: inf is not above 0",
        ),
        (
            "[pools.a]\nshared_tier = {speed = 1}",
            ":2: pools.a.shared_tier.speed: no such key; known are capacity_bytes, ",
        ),
        ("[pools.a]\nkind = 'slurm'\nscript = ['end after 1']", ":3: pools.a.script: only a fake"),
    ],
)
def test_a_mistake_is_named_by_its_line(text: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(text)
    said = str(refused.value)
    assert said.startswith("flowos.toml")
    assert complaint in said
    assert "\n" not in said


def test_the_schema_knows_the_keys_that_are_read() -> None:
    schema = settings_schema()
    assert not schema["additionalProperties"]
    pool = schema["$defs"]["Pool"]
    assert set(pool["properties"]) == {field.name for field in pool_fields()}
    assert pool["properties"]["kind"]["enum"] == ["local", "fake", "slurm", "sge"]
    assert all(each["description"] for each in pool["properties"].values())
    assert not pool["additionalProperties"]
    for key in pool["properties"]:
        with pytest.raises(SettingsError) as refused:  # known, and this is no value for any
            read(f"[pools.a]\n{key} = 1979-05-27")
        assert "no such key" not in str(refused.value)


@pytest.mark.parametrize(
    "given",
    [
        {"nodes": 0},
        {"nodes": 1.5},
        {"cores": 0},
        {"cores": True},
        {"gpus": -1},
        {"memory_bytes": 1.5},
        {"topology": "ring"},
        {"kernel": "-x"},
        {"kernel": "a&b"},
        {"kernel": "a b" * 99},
        {"id": "-a"},
        {"seconds": 0},
        {"seconds": -1.0},
        {"lease_seconds": math.inf},
        {"id": "-x"},
        {"seconds": 1e9},
    ],
)
def test_what_cannot_be_asked_of_a_pool_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(given))}=.*; expected "):
        Ask(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("hour", [0, 5e-324, 0.5, 1])
def test_a_node_may_cost_anything_from_nothing_on_and_may_have_no_price(hour: float) -> None:
    assert Price(per_node_hour=hour).per_node_hour == hour
    assert Price() in [pool.price for pool in read("[pools.a.price]")]


@pytest.mark.parametrize("seconds", [5e-324, 1, math.nextafter(1e9, 0)])
def test_a_pool_may_be_asked_for_any_time_that_a_timer_can_wait(seconds: float) -> None:
    asked = Ask(seconds=seconds, lease_seconds=seconds)
    assert (asked.seconds, asked.lease_seconds) == (seconds, seconds)


def test_of_what_is_not_known_of_a_node_it_has_none() -> None:
    node = NodeInfo(name="n1", cores=4)
    for ask in (Ask(gpus=1), Ask(memory_bytes=1), Ask(devices=(("fpga", 1),))):
        assert ask.lacks(node).endswith("n1 has 0")
    assert Ask().lacks(node) == ""


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (Ask(nodes=2, seconds=1.5, topology="pack", lease_seconds=5), ""),
        (Ask(cores=4, gpus=1, memory_bytes=100, devices=(("fpga", 2),)), ""),
        (Ask(cores=5), "5 cores asked for, n1 has 4"),
        (Ask(gpus=2), "2 GPUs asked for, n1 has 1"),
        (Ask(memory_bytes=101), "101 bytes of memory asked for, n1 has 100"),
        (Ask(devices=(("fpga", 3),)), "3 fpga asked for, n1 has 2"),
        (Ask(devices=(("fpga", 1), ("nic", 1))), "1 nic asked for, n1 has 0"),
    ],
)
def test_what_a_node_has_too_little_of(ask: Ask, complaint: str) -> None:
    node = NodeInfo(name="n1", cores=4, gpus=1, memory_bytes=100, devices=(("fpga", 2),))
    assert ask.lacks(node) == complaint


def test_the_steps_of_a_script_in_words() -> None:
    wait, lose, end, refuse, bare = read_script(
        "wait 1; lose 2 after 3; end after 4; refuse no such partition; refuse"
    )
    assert (wait, end) == (FakeStep("wait", 1.0, "Resources", 0), FakeStep("end", 4.0, "", 0))
    assert lose == FakeStep("lose", 3.0, "", 2)
    assert refuse == FakeStep("refuse", 0.0, "no such partition", 0)
    assert bare == FakeStep("refuse", 0.0, "no reason given", 0)


def test_a_complaint_without_a_place_is_of_the_file() -> None:
    assert _syntax("odd", "", "flowos.toml") == "flowos.toml: odd"
