"""[cloud.NAME] of flowos.toml: every mistake is one line with file, line and key."""

import pytest

from flowos.model import (
    Cloud,
    CloudRefusal,
    SettingsError,
    VmSize,
    cloud_fields,
    read_settings,
    settings_schema,
    tag_values,
)

EC2 = '[cloud.a]\nregion = "eu-central-1"\nimage = "ami-1"\nsize = "c6i.large"\n'
FAKE = '[cloud.a]\ndriver = "fake"\nfolder = "/f"\nuser_data = "/u"\n'


def read(text: str) -> tuple[Cloud, ...]:
    return read_settings(text, "flowos.toml").cloud


def test_a_file_without_a_table_has_no_cloud() -> None:
    assert read("[pools.local]") == ()


def test_a_cloud_is_what_its_table_says() -> None:
    text = """
        [cloud.aws]
        nodes = "c[1-8],gpu1"
        cluster = "physics"
        region = "eu-central-1"
        image = "ami-1"
        size = "c6i.large"
        subnet = "subnet-1"
        security_groups = ["sg-1"]
        ssh_key = "mine"
        spot = true
        tags = ["project=physics", "note=a=b"]
        user_data = "/etc/slurm/boot"
        credentials = "/etc/slurm/aws.toml"
        endpoint = "http://127.0.0.1:5000/"
        retry_seconds = 60
        answer_seconds = 10
        log = "/var/log/slurm/cloud.log"
    """
    assert read(text) == (
        Cloud(
            name="aws",
            driver="ec2",
            nodes="c[1-8],gpu1",
            cluster="physics",
            region="eu-central-1",
            image="ami-1",
            size="c6i.large",
            subnet="subnet-1",
            security_groups=("sg-1",),
            ssh_key="mine",
            spot=True,
            tags=("project=physics", "note=a=b"),
            user_data="/etc/slurm/boot",
            credentials="/etc/slurm/aws.toml",
            endpoint="http://127.0.0.1:5000/",
            retry_seconds=60.0,
            answer_seconds=10.0,
            log="/var/log/slurm/cloud.log",
        ),
    )
    assert tag_values(("project=physics", "note=a=b")) == {"project": "physics", "note": "a=b"}


def test_a_fake_cloud_answers_as_its_table_says() -> None:
    answers = ["create: VcpuLimitExceeded: no", "end: hang", "list: wait 2.5"]
    assert read(f"{FAKE}answers = {answers}")[0].answers == tuple(answers)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[cloud.a]", "flowos.toml:1: cloud.a.region: it is empty; driver 'ec2' needs it"),
        ("[cloud.a]\nregion = 'x'", ":1: cloud.a.image: it is empty; driver 'ec2' needs it"),
        ("[cloud.a]\ndriver = 'fake'", ":1: cloud.a.folder: it is empty; driver 'fake' needs"),
        ("[cloud.a]\ndriver = 'gce'", ":2: cloud.a.driver: 'gce': one of ec2, fake"),
        ("[cloud.a]\nregoin = 'x'", ":2: cloud.a.regoin: no such key; did you mean 'region'?"),
        ("[cloud]\na = 1", ":2: cloud.a: 1: a table is expected, as [cloud.a]"),
        ("cloud = 1", ":1: cloud: 1: a table is expected, as [cloud]"),
        (EC2.replace(".a", ".'a b'"), ":1: cloud.'a b'.name: 'a b': expected letters"),
        (f"{EC2}nodes = ' c1'", ":5: cloud.a.nodes: ' c1': expected printable characters"),
        (f'{EC2}cluster = "a\\nb"', ":5: cloud.a.cluster: 'a\\nb': expected printable"),
        (f"{EC2}user_data = 'boot'", ":5: cloud.a.user_data: 'boot': expected an absolute path"),
        (f"{EC2}retry_seconds = 0", ":5: cloud.a.retry_seconds: 0.0 is not above 0, and below"),
        (f"{EC2}answer_seconds = 1e9", ":5: cloud.a.answer_seconds: 1000000000.0 is not above"),
        (f"{EC2}tags = ['x']", ":5: cloud.a.tags: 'x': expected NAME=VALUE"),
        (f"{EC2}tags = ['flowos-node=x']", ":5: cloud.a.tags: 'flowos-node=x': expected NAME="),
        (f"{EC2}answers = ['create: no']", ":5: cloud.a.answers: only a fake cloud has them"),
        (f"{FAKE}answers = ['make: no']", ":5: cloud.a.answers: 'make: no': expected create, "),
        (f"{FAKE}answers = ['create: ']", ":5: cloud.a.answers: 'create: ': expected create, "),
        (f"{EC2}security_groups = ['sg']", ":5: cloud.a.security_groups: they need a subnet"),
        (f"{EC2}endpoint = 'ftp://x'", ":5: cloud.a.endpoint: 'ftp://x': expected http(s)://"),
        (f"{EC2}endpoint = 'http://x:65536'", ":5: cloud.a.endpoint: 'http://x:65536': expected"),
        (f"{EC2}spot = 1", ":5: cloud.a.spot: bool expected, got 1"),
    ],
)
def test_a_mistake_is_named_by_its_line(text: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(text)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("seconds", [0.001, 999999999.0])
def test_times_may_be_anything_that_a_timer_can_wait(seconds: float) -> None:
    assert read(f"{EC2}retry_seconds = {seconds}")[0].retry_seconds == seconds


def test_the_schema_and_the_page_know_the_keys_that_are_read() -> None:
    cloud = settings_schema()["$defs"]["Cloud"]
    assert set(cloud["properties"]) == {field.name for field in cloud_fields()}
    assert not cloud["additionalProperties"]
    assert cloud["properties"]["driver"]["enum"] == ["ec2", "fake"]


@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        (CloudRefusal("quota", "no"), "quota: no"),
        (CloudRefusal("unknown", "odd"), "odd"),
        (CloudRefusal("unreachable", "no answer"), "no answer"),
    ],
)
def test_a_refusal_says_what_it_comes_to(refusal: CloudRefusal, says: str) -> None:
    assert str(refusal) == says


@pytest.mark.parametrize(
    ("vcpus", "gpus", "memory_bytes", "fits"),
    [(4, 1, 8, True), (0, 0, 0, True), (5, 1, 8, False), (4, 2, 8, False), (4, 1, 9, False)],
)
def test_a_size_fits_if_it_has_at_least_what_is_asked_for(
    vcpus: int, gpus: int, memory_bytes: int, fits: bool
) -> None:
    size = VmSize(
        cloud="ec2",
        name="small",
        vcpus=4,
        memory_bytes=8,
        gpus=1,
        gpu="T4",
        network_bytes=None,
        region="r",
        price=1.0,
        spot=None,
        currency="USD",
        source="here",
    )
    assert size.fits(vcpus=vcpus, gpus=gpus, memory_bytes=memory_bytes) is fits
