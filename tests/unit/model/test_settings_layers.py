"""Settings of files, variables and options: which counts, and where a mistake was made."""

import pytest

from flowos.model import (
    Pool,
    SettingsError,
    SettingsLayer,
    file_layer,
    merged,
    options_layer,
    read_layers,
    said_settings,
    unused_variables,
    variables_layer,
)

OWN = file_layer(
    '[pools.hpc]\nkind = "slurm"\naccount = "physics"\nnodes = 8\n'
    '[pools.hpc.price]\ncurrency = "CHF"',
    "own.toml",
)
PROJECT = file_layer("[pools.hpc]\nnodes = 2\n[pools.empty]\n", "flowos.toml")


def pool(name: str, *layers: SettingsLayer) -> Pool:
    (found,) = (each for each in read_layers(layers).pools if each.name == name)
    return found


def mistake(*layers: SettingsLayer) -> str:
    with pytest.raises(SettingsError) as told:
        read_layers(layers)
    return str(told.value)


def said(*layers: SettingsLayer) -> dict[str, tuple[object, str]]:
    return {each.key: (each.value, each.said_at) for each in said_settings(merged(layers))}


def test_a_project_says_only_what_differs() -> None:
    found = pool("hpc", OWN, PROJECT)
    assert (found.kind, found.account, found.nodes) == ("slurm", "physics", 2)
    assert said(OWN, PROJECT) == {
        "pools.hpc.kind": ("slurm", "own.toml:2"),
        "pools.hpc.account": ("physics", "own.toml:3"),
        "pools.hpc.nodes": (2, "flowos.toml:2"),
        "pools.hpc.price.currency": ("CHF", "own.toml:6"),
        "pools.empty": ({}, "flowos.toml:3"),
    }


def test_a_variable_counts_before_files_and_an_option_before_both() -> None:
    files = merged((OWN, PROJECT))
    variables = variables_layer(
        {
            "FLOWOS_POOLS_HPC_NODES": "3",
            "FLOWOS_POOLS_HPC_ACCOUNT": "4711",
            "FLOWOS_POOLS_HPC_PRICE_PER_NODE_HOUR": "1.5",
            "FLOWOS_POOLS_LOCAL_CORES": "1",
            "FLOWOS_MPI": "mpich",
        },
        files,
    )
    given = ("pools.hpc.nodes=4", "pools.hpc.qos=5", "pools.hpc.price.currency=EUR")
    options = options_layer(given)
    found = pool("hpc", files, variables, options)
    assert (found.nodes, found.account, found.qos) == (4, "4711", "5")
    assert found.price is not None
    assert (found.price.per_node_hour, found.price.currency) == (1.5, "EUR")
    assert pool("local", files, variables).cores == 1
    where = said(files, variables, options)
    assert where["pools.hpc.nodes"] == (4, "--set pools.hpc.nodes=4")
    assert where["pools.local.cores"] == (1, "FLOWOS_POOLS_LOCAL_CORES")


def test_a_table_has_a_variable_whatever_signs_its_name_has() -> None:
    sizes = file_layer('[sizes."hpc6a.48-x"]\nvcpus = 96\n', "f")
    found = variables_layer({"FLOWOS_SIZES_HPC6A_48_X_VCPUS": "2"}, sizes)
    assert read_layers((sizes, found)).sizes[0].vcpus == 2


def test_a_mistake_is_told_with_where_it_was_made() -> None:
    variables = variables_layer({"FLOWOS_POOLS_HPC_NODES": "many"}, OWN)
    assert mistake(OWN, variables) == (
        "FLOWOS_POOLS_HPC_NODES: pools.hpc.nodes: int expected, got 'many'"
    )
    assert mistake(OWN, options_layer(["pools.hpc.nodse=2"])) == (
        "--set pools.hpc.nodse=2: pools.hpc.nodse: no such key; did you mean 'nodes'?"
    )
    assert mistake(options_layer(["pool=2"])).startswith("--set pool=2: pool: no such key")
    assert mistake(OWN, options_layer(["pools.hpc.price.currency=100"])).startswith(
        "--set pools.hpc.price.currency=100: pools.hpc.price.currency: '100': expected 3 capital"
    )
    assert mistake(OWN, file_layer("[pools]\nhpc = 1", "b")) == (
        "b:2: pools.hpc: 1: a table is expected, as [pools.hpc]"
    )
    assert mistake(file_layer("pools = 1", "b"), variables_layer({"FLOWOS_POOLS_": ""}, OWN)) == (
        "b:1: pools: 1: a table is expected, as [pools]"
    )
    assert mistake(file_layer('"zoé" = 1', "b")).startswith("b: 'zoé': no such key")


def test_values_in_each_other_without_an_end_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"^b: values are nested too deeply in each other"):
        file_layer(f"pools = {'[' * 100_000}", "b")
    options = options_layer([f"pools.hpc.nodes={'[' * 100_000}"])
    assert "int expected" in mistake(OWN, options)


@pytest.mark.parametrize(
    "option",
    [
        *("pools.local.cores", "=2", ".=", "pools..local=1", ".pools=1", "pools.=1", "pools. .x=1"),
        *('pools."local=1', 'pools."".cores=1', 'pools.a"b".cores=1'),
    ],
)
def test_an_option_is_a_key_and_a_value(option: str) -> None:
    with pytest.raises(SettingsError) as told:
        options_layer([option])
    assert str(told.value) == f"--set {option}: expected KEY=VALUE, as pools.local.cores=2"


def test_an_empty_option_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^--set '': expected KEY=VALUE, as pools\."):
        options_layer([""])


def test_a_key_may_be_quoted() -> None:
    (found,) = said(options_layer(["""sizes."hpc6a.48xlarge".'vcpus'=2"""])).values()
    assert found[0] == 2


def test_a_variable_of_no_table_is_not_used_and_is_named() -> None:
    variables = {"FLOWOS_POOLS_GONE_CORES": "1", "FLOWOS_CONFIG": "f", "FLOWOS_POOLS_HPC_QOS": "x"}
    assert unused_variables(variables, OWN) == ("FLOWOS_POOLS_GONE_CORES",)
    no_table = file_layer("pools = 1", "f")
    assert unused_variables(variables, no_table) == (
        "FLOWOS_POOLS_GONE_CORES",
        "FLOWOS_POOLS_HPC_QOS",
    )


def test_a_variable_of_two_settings_is_refused() -> None:
    both = file_layer("[pools.a-b]\n[pools.a_b]\n", "f")
    assert not unused_variables({"FLOWOS_POOLS_LOCAL_CORES": "1"}, both)
    for read in (variables_layer, unused_variables):
        with pytest.raises(SettingsError) as told:
            read({"FLOWOS_POOLS_A_B_CORES": "1"}, both)
        assert str(told.value) == (
            "FLOWOS_POOLS_A_B_CORES: it is the name of pools.a-b.cores and of pools.a_b.cores: "
            "unset it and use --set"
        )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("FLOWOS_POOLS_HPC_NODS", "pools.hpc has no key NODS; did you mean 'NODES'?"),
        (
            "FLOWOS_POOLS_HPC_PRICE_CURENCY",
            "pools.hpc has no key PRICE_CURENCY; did you mean 'PRICE_CURRENCY'?",
        ),
        ("FLOWOS_POOLS_LOCAL_CORE", "pools.local has no key CORE; did you mean 'CORES'?"),
    ],
)
def test_a_variable_whose_key_is_misspelt_is_refused(name: str, says: str) -> None:
    with pytest.raises(SettingsError) as told:
        variables_layer({name: "1"}, OWN)
    assert str(told.value) == f"{name}: {says}"


@pytest.mark.parametrize("name", ["FLOWOS_POOLS_HPC_TEST_NODES", "FLOWOS_POOLS_HPC_XYZ"])
def test_a_variable_that_may_be_of_a_pool_elsewhere_is_not_used(name: str) -> None:
    assert not variables_layer({name: "1"}, OWN).raw
    assert unused_variables({name: "1"}, OWN) == (name,)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            ["pools.hpc.kind=local"],
            "own.toml:4: pools.hpc.nodes: a local pool has 1 node, this machine, not 8 "
            "(with --set pools.hpc.kind=local)",
        ),
        (
            ["pools.hpc.kind=sge", "pools.hpc.account="],
            "own.toml:1: pools.hpc.queue: an sge pool needs one "
            "(with --set pools.hpc.account=, --set pools.hpc.kind=sge)",
        ),
        (
            ["pools.hpc.nodes=0"],
            "--set pools.hpc.nodes=0: pools.hpc.nodes: 0 is below 1",
        ),
        (
            ['pools.hpc={nodes=2, kind="local"}'],
            '--set pools.hpc={nodes=2, kind="local"}: pools.hpc.nodes: a local pool has 1 node, '
            "this machine, not 2",
        ),
        (
            ["pools.hpc={nodse=2}"],
            "--set pools.hpc={nodse=2}: pools.hpc.nodse: no such key; did you mean 'nodes'?",
        ),
    ],
)
def test_a_value_that_cannot_be_with_one_given_beside_it_names_both(
    given: list[str], says: str
) -> None:
    assert mistake(OWN, options_layer(given)) == says


def test_a_mistake_of_a_file_alone_names_nothing_that_was_given_beside_it() -> None:
    bad = file_layer('[pools.hpc]\nkind = "fake"\nnodes = 0\n', "f")
    said = "f:3: pools.hpc.nodes: 0 is below 1"
    assert mistake(bad) == mistake(bad, options_layer(["pools.hpc.cores=1"])) == said
    assert mistake(bad, options_layer(["pools.hpc.nodes=x"])).startswith("--set pools.hpc.nodes=x")


def test_tables_within_the_value_of_an_option_have_its_place() -> None:
    option = 'pools.new={kind="fake",price={currency="EUR"}}'
    assert said(OWN, options_layer([option]))["pools.new.price.currency"] == (
        "EUR",
        f"--set {option}",
    )


def test_a_value_and_a_table_of_one_name_are_refused_in_either_order() -> None:
    for given, wrong, says in (
        (("pools.x=5", "pools.x.nodes=4"), "pools.x=5", "5: a table is expected, as [pools.x]"),
        (
            ("pools.hpc.price=5", "pools.hpc.price.currency=EUR"),
            "pools.hpc.price=5",
            "5: a table is expected, as [pools.hpc.price]",
        ),
        (
            ("pools.x.nodes=4", "pools.x.nodes.z=1"),
            "pools.x.nodes.z=1",
            "a table here, and a value by --set pools.x.nodes=4: leave one of them out",
        ),
        (("x={}", "x=1"), "x={}", "a table here, and a value by --set x=1: leave one of them out"),
    ):
        key = wrong.removesuffix(".z=1").partition("=")[0]
        for options in (given, given[::-1]):
            with pytest.raises(SettingsError) as told:
                options_layer(options)
            assert str(told.value) == f"--set {wrong}: {key}: {says}"
    whole = options_layer(["pools.x={kind='fake'}", "pools.x.nodes=4", "pools.x={cores=2}"])
    assert (pool("x", whole).nodes, pool("x", whole).cores) == (4, 2)


def test_a_value_and_a_table_of_one_name_in_two_places_are_refused() -> None:
    value, table = file_layer("[pools]\nhpc = 1", "b"), options_layer(["pools.hpc.qos=a"])
    assert mistake(value, table) == "b:2: pools.hpc: 1: a table is expected, as [pools.hpc]"
    variables = variables_layer({"FLOWOS_POOLS_HPC_QOS": "a"}, value)
    assert mistake(value, variables) == mistake(value, OWN) == mistake(OWN, value)
    assert mistake(OWN, value) == mistake(value, table)
    nodes = variables_layer({"FLOWOS_POOLS_HPC_NODES": "{z = 1}"}, OWN)
    assert mistake(OWN, nodes) == (
        "FLOWOS_POOLS_HPC_NODES: pools.hpc.nodes: a table here, and a value by own.toml:4: "
        "leave one of them out"
    )


@pytest.mark.parametrize("option", ["pools.hcp.nodes=2", "pools.hcp.cores=2", "pools.hcp={}"])
def test_a_pool_of_an_option_whose_name_is_nearly_anothers_is_refused(option: str) -> None:
    assert mistake(OWN, options_layer([option])) == (
        f"--set {option}: pools.hcp: no such pool; did you mean 'hpc'? A new one needs its kind"
    )
    new = options_layer(["pools.hcp.kind=fake", "pools.hcp.nodes=2"])
    assert pool("hcp", OWN, new).nodes == 2
    assert pool("other", OWN, options_layer(["pools.other.cores=2"])).cores == 2
    assert mistake(OWN, options_layer(["pools.hcp=2"])).endswith(
        "a table is expected, as [pools.hcp]"
    )
    assert mistake(OWN, options_layer(["pools=2"])).endswith(
        "pools: 2: a table is expected, as [pools]"
    )


def test_defaults_are_those_that_no_one_says() -> None:
    found = {each.key: each for each in said_settings(OWN, defaults=True)}
    assert found["pools.hpc.nodes"].said_at == "own.toml:4"
    assert (found["pools.hpc.env"].value, found["pools.hpc.env"].said_at) == ("bare", "")
    assert found["pools.local.kind"].value == "local"
    assert found["pools.hpc.price.currency"].value == "CHF"
    assert "pools.hpc.price" not in found
