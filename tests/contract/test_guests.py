"""What every guest promises; see flowos.drivers._guests. A new one joins `GUESTS`."""

from pathlib import PurePath

import pytest

from flowos.drivers import GUESTS, GuestPlan, GuestWords, guest_named
from flowos.drivers._guests import ADDRESS, FOLDER, PORT
from flowos.model import SliceRefused

GIB = 1 << 30
PLAN = GuestPlan(
    python="/venv/bin/python",
    cores=4,
    memory_bytes=8 * GIB,
    head_cores=0,
    secret="5ec2e7",
    files=PurePath("/shared/guest"),
    pem=PurePath("/shared/guest/worker.pem"),
    ours="10.0.0.9",
    here=False,
    cwd=PurePath("/home/me"),
)
HEADS = {
    "dask": (
        "2026-11-23 12:57:01,119 - distributed.scheduler - INFO -   Scheduler at:"
        "  tls://10.0.0.1:40035",
        "tls://10.0.0.1:40035",
    ),
    "jupyter": (
        "[I 2026-11-23 13:00:01.100 ServerApp] https://10.0.0.1:33931/lab?token=...",
        "https://10.0.0.1:33931/lab",
    ),
    "ray": ("    ray start --address='10.0.0.9:40621'", "10.0.0.9:40621"),
    "spark": (
        "26/11/23 13:00:00 INFO Master: Starting Spark master at spark://10.0.0.1:33949",
        "spark://10.0.0.1:33949",
    ),
}
JOINED = {
    "dask": "distributed.worker - INFO -         Registered to:  tls://10.0.0.1:40035",
    "ray": "Ray runtime started.",
    "spark": "26/11/23 13:00:16 INFO Worker: Successfully registered with master spark://10.0.0.1:1",
}
OTHER = (
    "",
    "Picked up JAVA_TOOL_OPTIONS: -XX:-UsePerfData",
    "[I 2026-11-23 13:00:01.100 ServerApp] see https://jupyter.org/help",
    "Connecting to master 10.0.0.1:33949...",
)
every = pytest.mark.parametrize("name", GUESTS)


def programs(name: str) -> list[GuestWords]:
    driver = guest_named(name)
    worker = driver.worker(PLAN, HEADS[name][1])
    return [driver.head(PLAN), *([] if worker is None else [worker])]


@every
def test_its_head_says_where_it_is_in_one_of_its_lines(name: str) -> None:
    driver = guest_named(name)
    said, address = HEADS[name]
    assert driver.read_address(said) == address
    assert not any(map(driver.read_address, OTHER))


@every
def test_a_worker_says_that_it_has_joined(name: str) -> None:
    driver = guest_named(name)
    assert driver.has_joined(JOINED.get(name, "")) == (name in JOINED)
    assert not any(map(driver.has_joined, OTHER))
    assert (len(programs(name)) == 2) == (name in JOINED)


@every
def test_secrets_stand_in_no_word_of_a_command(name: str) -> None:
    assert not any(PLAN.secret in word for words in programs(name) for word in words.argv)


@every
def test_each_listens_on_its_nodes_address_and_keeps_its_files_in_its_folder(name: str) -> None:
    for words in programs(name):
        said = (*words.argv, *(value for _, value in words.variables))
        assert any(ADDRESS in word for word in said)
        if name != "dask" or "dask_worker" in said[2]:
            assert any(FOLDER in word for word in said)


def test_a_ray_that_gives_up_is_started_again() -> None:
    assert guest_named("ray").hasty in "Exception: The current node timed out during startup."
    assert not any(guest_named(name).hasty for name in GUESTS if name != "ray")


@every
def test_it_says_what_installs_it(name: str) -> None:
    driver = guest_named(name)
    assert driver.name == name
    assert driver.modules
    assert driver.remedy.startswith("pip install ")


def test_a_client_of_dask_has_the_certificate() -> None:
    found = guest_named("dask").connection(PLAN, "tls://10.0.0.1:1")
    assert found.options["security"]["tls_client_key"] == str(PLAN.pem)
    assert found.options["security"]["require_encryption"]
    assert guest_named("dask").files(PLAN) == {}


def test_a_worker_of_dask_has_the_nodes_cores_and_memory() -> None:
    words = programs("dask")[1].argv
    assert words[words.index("--nthreads") + 1] == "4"
    assert words[words.index("--memory-limit") + 1] == str(8 * GIB)


def test_ray_has_a_token_for_head_workers_and_client() -> None:
    driver = guest_named("ray")
    assert driver.files(PLAN) == {"ray-token": PLAN.secret}
    variables = dict(driver.connection(PLAN, "10.0.0.9:1").variables)
    assert variables == {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": "/shared/guest/ray-token",
    }
    assert all(dict(words.variables) == variables for words in programs("ray"))


def test_no_agent_of_ray_has_to_choose_its_port_in_a_quarter_of_a_minute() -> None:
    for words in programs("ray"):
        assert sum(f"port={PORT}" in word for word in words.argv) == 4
        assert not any("agent" in word and word.endswith("=0") for word in words.argv)


def test_ray_gathers_what_workers_print_for_clients_that_show_it() -> None:
    driver, quiet = guest_named("ray"), GuestPlan(**{**vars(PLAN), "logs": False})
    less = "--include-log-monitor=false"
    assert not any(less in words.argv for words in programs("ray"))
    worker = driver.worker(quiet, "10.0.0.9:40621")
    assert worker
    assert less in driver.head(quiet).argv
    assert less in worker.argv


def test_the_head_of_ray_beside_the_client_has_no_cores_for_work() -> None:
    assert guest_named("ray").head_is_ours
    head, worker = programs("ray")
    assert "--num-cpus=0" in head.argv
    assert {"--num-cpus=4", "--address=10.0.0.9:40621"} <= set(worker.argv)


def test_sparks_settings_are_in_a_file_that_all_of_it_and_clients_read() -> None:
    driver = guest_named("spark")
    (name,) = driver.files(PLAN)
    lines = dict(line.split(" ", 1) for line in driver.files(PLAN)[name].splitlines())
    assert name == "spark-defaults.conf"
    assert lines["spark.authenticate"] == "true"
    assert lines["spark.authenticate.secret"] == PLAN.secret
    assert lines["spark.driver.host"] == PLAN.ours
    for words in programs("spark"):
        assert ("SPARK_CONF_DIR", "/shared/guest") in words.variables
    variables = dict(driver.connection(PLAN, "spark://10.0.0.1:1").variables)
    assert variables == {"SPARK_CONF_DIR": "/shared/guest", "PYSPARK_PYTHON": PLAN.python}


@pytest.mark.parametrize(
    ("memory_bytes", "said"), [(8 * GIB, "7168m"), (3 * GIB >> 1, "512m"), (GIB, "512m")]
)
def test_spark_leaves_a_gib_of_a_node_and_takes_half_of_one_at_least(
    memory_bytes: int, said: str
) -> None:
    plan = GuestPlan(**{**vars(PLAN), "memory_bytes": memory_bytes})
    words = guest_named("spark").worker(plan, "spark://10.0.0.1:1")
    assert words
    assert words.argv[words.argv.index("--memory") + 1] == said


def test_jupyter_has_its_token_in_its_url_and_tls_on_another_machine() -> None:
    driver = guest_named("jupyter")
    address = driver.connection(PLAN, "http://127.0.0.1:1/lab").address
    assert address == f"http://127.0.0.1:1/lab?token={PLAN.secret}"
    assert ("JUPYTER_TOKEN", PLAN.secret) in driver.head(PLAN).variables
    certified = f"--ServerApp.certfile={PLAN.pem}"
    assert certified in driver.head(PLAN).argv
    assert certified not in driver.head(GuestPlan(**{**vars(PLAN), "here": True})).argv
    assert driver.files(PLAN) == {}


def test_there_is_no_other_guest() -> None:
    with pytest.raises(SliceRefused, match="guest 'flink': expected one of dask, jupyter, ray"):
        guest_named("flink")
