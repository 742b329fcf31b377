"""Nouns survive the way to JSON and back; what is no noun is refused with its place."""

import json
import math
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowos.model import (
    Cache,
    Case,
    Design,
    DeviceNumbers,
    Facts,
    Image,
    Launch,
    LogicalCpu,
    MachineState,
    Measurement,
    MeasurementRequest,
    Mpi,
    Needs,
    Outcome,
    Run,
    Sample,
    Share,
    Unmeasured,
    from_plain,
    to_json,
    to_plain,
)

st.register_type_strategy(PurePath, st.sampled_from(["/", "/usr/bin/gcc", "a b/ü"]).map(PurePath))
st.register_type_strategy(float, st.floats(allow_nan=False))


def through_json(noun: Any) -> Any:
    return from_plain(type(noun), json.loads(json.dumps(to_plain(noun), allow_nan=False)))


@settings(max_examples=60)
@given(st.one_of(st.from_type(Sample), st.from_type(Measurement), st.from_type(Run)))
def test_every_stored_noun_comes_back_equal(noun: Any) -> None:
    assert through_json(noun) == noun


@given(st.from_type(Case))
def test_details_come_back_though_they_are_no_identity(case: Case) -> None:
    assert through_json(case).details == case.details
    other = replace(case, details=(*case.details, ("path", "/usr/bin/gcc")))
    assert (other, hash(other)) == (case, hash(case))


@pytest.mark.parametrize("needs", [Needs(), Needs(cores=1), Needs(cores=4, gpus=1, alone=True)])
def test_a_launch_comes_back_with_its_needs(needs: Needs) -> None:
    launch = Launch(argv=("true",), needs=needs)
    assert through_json(launch) == launch
    assert "binds" not in to_plain(launch)["needs"]


def test_a_number_that_json_lacks_comes_back() -> None:
    share = Share(kind="measured", of="x", ceiling=math.inf, value=math.nan)
    back = through_json(share)
    assert back.ceiling == math.inf
    assert math.isnan(back.value)


def test_for_readers_outside_a_number_that_json_lacks_is_null_and_comes_back_as_nan() -> None:
    share = Share(kind="measured", of="x", ceiling=math.inf, value=0.5)
    plain = to_json({"shares": [share]})
    assert plain["shares"][0] == {"kind": "measured", "of": "x", "ceiling": None, "value": 0.5}
    assert math.isnan(from_plain(Share, plain["shares"][0]).ceiling)


def test_a_field_that_an_older_writer_did_not_know_takes_its_default() -> None:
    raw = to_plain(Case("stream", (("threads", "2"),)))
    del raw["details"]
    assert from_plain(Case, raw) == Case("stream", (("threads", "2"),))


CPU = LogicalCpu(number=0, core=0, socket=0, node=0)
FACTS = Facts(
    host="h", system="s", kernel="k", architecture="a", cpu_model="c", cpus=(CPU,), allowed=(0,)
)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"cpus": [{**to_plain(CPU), "core": "0"}]}, "facts.cpus[0].core: int expected, got '0'"),
        ({"cpus": [{**to_plain(CPU), "core": True}]}, "facts.cpus[0].core: int expected, got True"),
        ({"cpus": {}}, "facts.cpus: list expected, got {}"),
        ({"host": None}, "facts.host: str expected, got None"),
        ({"quota_cpus": "much"}, "facts.quota_cpus: number expected, got 'much'"),
        ({"quota_cpus": 10**400}, "facts.quota_cpus: smaller number expected, got 1000"),
        ({"memory": []}, "facts.memory: Memory expected, got []"),
        ({"colour": 1}, "facts: Facts has no field 'colour'"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match="^" + complaint.replace("[", r"\[").replace("{", r"\{")):
        from_plain(Facts, {**to_plain(FACTS), **change})


def test_other_wrong_values_are_refused_with_their_place() -> None:
    with pytest.raises(ValueError, match="lacks its field 'probe'"):
        from_plain(Case, {})
    with pytest.raises(ValueError, match=r"^facts: Facts lacks its field 'allowed'$"):
        from_plain(Facts, {})
    with pytest.raises(ValueError, match=r"case.levels\[0\]: list of 2 expected, got \['a'\]"):
        from_plain(Case, {"probe": "p", "levels": [["a"]]})
    with pytest.raises(ValueError, match=r"request.effort: one of .* expected, got 'wild'"):
        from_plain(MeasurementRequest, {"effort": "wild"})
    with pytest.raises(ValueError, match=r"request.scratch: path expected, got 3"):
        from_plain(MeasurementRequest, {"scratch": 3})


def test_a_pair_and_an_optional_pair_are_read() -> None:
    state = MachineState(clock_hz=(4.1e9, 4.0e9))
    assert through_json(state) == state
    assert through_json(replace(state, clock_hz=None)).clock_hz is None


@dataclass(frozen=True)
class Numbered:
    devices: DeviceNumbers


def test_numbers_of_devices_may_be_names() -> None:
    gpus = Numbered(devices=(("gpu", (0, "GPU-1f", 2)),))
    assert through_json(gpus) == gpus
    with pytest.raises(ValueError, match=r"\[1\]\[0\]: int expected, got None"):
        from_plain(Numbered, {"devices": [["gpu", [None]]]})


def test_a_tuple_of_pairs_of_nouns_is_read() -> None:
    run = Run(
        id="r",
        started="2026-11-20T10:00:00Z",
        host="h",
        version="0",
        request=MeasurementRequest(),
        facts=replace(
            FACTS, caches=(Cache(level=1, kind="data", size_bytes=1, line_bytes=64, cpus=(0,)),)
        ),
        unmeasured=((Case("fio"), Unmeasured(reason="no fio", remedy="apt install fio")),),
    )
    assert through_json(run) == run


@pytest.mark.parametrize(
    ("noun", "old", "new"),
    [
        (Run(id="r", started="", host="h", version="0", request=MeasurementRequest(), facts=FACTS),
         "wanted", "request"),
        (Mpi(name="m", family="mpich", version="4", compiler=PurePath("cc"), mpirun=PurePath("m")),
         "starter", "mpirun"),
    ],
)  # fmt: skip
def test_a_field_is_read_by_the_name_that_it_had_before(noun: Any, old: str, new: str) -> None:
    plain = to_plain(noun)
    before = {old if name == new else name: value for name, value in plain.items()}
    assert before.keys() != plain.keys()
    assert from_plain(type(noun), before) == noun
    with pytest.raises(ValueError, match=f"has no field '{old}'"):
        from_plain(type(noun), before | plain)


def test_what_is_no_part_of_a_noun_is_a_programming_error() -> None:
    with pytest.raises(TypeError, match="object is no part of a noun"):
        to_plain((object(),))
    with pytest.raises(TypeError, match="is no part of a noun"):
        from_plain(Design, {})
    with pytest.raises(TypeError, match="is no part of a noun"):
        from_plain(Outcome, {})


def test_a_literal_of_an_image_is_read() -> None:
    image = Image(form="sif", digest="sha256:1", source=PurePath("/x.sif"))
    assert through_json(image) == image
