from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.model import Ask, Needs, WiringError, task, with_choices


@pytest.mark.parametrize(("name", "value"), [("cores", 0), ("ranks", 0), ("gpus", -1)])
def test_a_need_below_its_least_is_refused_by_name(name: str, value: int) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=rf"Needs\({name}={value}\): at least"):
        Needs(**given)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("cores", 1.5, "a whole number"),
        ("cores", True, "a whole number"),
        ("cores", "2", "a whole number"),
        ("ranks", 2.0, "a whole number"),
        ("ranks", None, "a whole number"),
        ("memory_bytes", 1e9, "a whole number"),
        ("gpus", float("nan"), "a whole number"),
        ("alone", 1, "True or False"),
    ],
)
def test_a_need_of_another_type_is_refused_by_name(name: str, value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=rf"Needs\({name}=.*\): expected {words}"):
        Needs(**{name: value})


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ("fpga", "devices='fpga'; expected a count for each name: {'fpga': 1}"),
        (("/dev/x",), r"devices=\('/dev/x',\); expected a count for each name"),
        (1, "devices=1; expected a count"),
        ((("fpga", 1), ("fpga", 2)), "devices=.*; expected a count for each name"),
        ({"fpga": -1}, "devices: fpga=-1; expected a positive int"),
        ({"fpga": 0}, "devices: fpga=0; expected a positive int"),
        ({"fpga": True}, "devices: fpga=True; expected a positive int"),
        ({"fp ga": 1}, "devices: 'fp ga'; expected letters, digits, _- "),
        ({"fp,ga": 1}, "devices: 'fp,ga'; expected letters"),
        ({"-ga": 1}, "devices: '-ga'; expected letters"),
        ({"9": 1}, "devices: '9'; expected letters"),
        ({"": 1}, "devices: ''; expected letters"),
        ({"é": 1}, "devices: 'é'; expected letters"),
        ({1: 1}, "devices: 1; expected letters"),
        ({"gpu": 1}, "devices: 'gpu'; GPUs have a number of their own, gpus="),
    ],
)
def test_devices_that_cannot_be_are_refused_by_name(devices: Any, words: str) -> None:
    for noun in (Needs, Ask):
        with pytest.raises(ValueError, match=words):
            noun(devices=devices)


def test_devices_are_kept_by_name_whatever_their_order() -> None:
    needs = Needs(devices={"nic-2": 1, "fpga": 2})
    assert needs == Needs(devices=(("fpga", 2), ("nic-2", 1)))
    assert needs.device_counts == (("fpga", 2), ("nic-2", 1))
    assert hash(needs) != hash(Needs())


def test_a_whole_number_of_numpy_is_one() -> None:
    needs = Needs(cores=np.int64(2), memory_bytes=np.uint8(7))  # type: ignore[arg-type]
    assert (needs, type(needs.cores)) == (Needs(cores=2, memory_bytes=7), int)


def test_who_asks_for_cores_has_them_bound_and_who_says_nothing_has_not() -> None:
    assert not Needs().binds
    assert not Needs(gpus=1).binds
    assert Needs(cores=1).binds
    assert Needs(cores=2, alone=True).binds


def test_what_are_no_needs_is_refused_when_the_task_is_made() -> None:
    wrong: Any = {"cores": 2}
    with pytest.raises(WiringError, match=r"task 'same': needs=\{'cores': 2\} \(dict\); use fo.N"):

        @task(needs=wrong)
        def same(x: int) -> int:
            return x


def test_a_task_needs_one_core_unless_it_says_more() -> None:
    assert Needs() == Needs(cores=1, ranks=1, gpus=0, memory_bytes=0)


def test_ranks_are_on_as_many_nodes_as_they_are_at_most() -> None:
    assert Needs(ranks=2, nodes=np.int64(2)).nodes == 2  # type: ignore[arg-type]
    assert Needs(ranks=2).nodes is None
    with pytest.raises(ValueError, match=r"Needs\(nodes=3\): more than its ranks, 2"):
        Needs(ranks=2, nodes=3)
    with pytest.raises(ValueError, match=r"Needs\(nodes=0\): at least 1"):
        Needs(nodes=0)


@pytest.mark.parametrize("seconds", [-1, float("nan"), True, "60", None])
def test_a_time_that_is_none_is_refused(seconds: object) -> None:
    words = r"remaining_seconds=.*\): expected a number of 0 or more"
    with pytest.raises(ValueError, match=words):
        Needs(remaining_seconds=seconds)  # type: ignore[arg-type]
    assert Needs(remaining_seconds=60) == Needs(remaining_seconds=60.0)


def test_what_is_needed_is_said_in_words() -> None:
    for needs, words in (
        (Needs(), "1 core"),
        (Needs(gpus=1), "1 GPU"),
        (Needs(gpus=2, cores=1), "2 GPUs and 1 core"),
        (Needs(cores=2, ranks=3), "6 cores"),
        (Needs(devices={"fpga": 2}, memory_bytes=9), "2 fpga and 9 bytes"),
        (Needs(alone=True, remaining_seconds=60), "the whole node and 60 s left"),
    ):
        assert needs.words == words
    either = with_choices(Needs(gpus=1), [Needs(cores=8)])
    assert either.words == "1 GPU, else 8 cores"
    assert [each.cores for each in either.choices] == [1, 8]
    assert either != Needs(gpus=1)
    assert not either.binds


def test_a_task_takes_several_in_the_order_in_which_they_are_preferred() -> None:
    def same(x: int) -> int:
        return x

    given = (Needs(gpus=1), Needs(cores=8))
    assert fo.task(same, needs=given).needs == with_choices(given[0], given[1:])
    assert fo.command(["true"], needs=[given[1]]).needs == given[1]
    nested = fo.task(same, needs=given).needs
    for wrong in ((), (Needs(), 3), (nested,)):
        with pytest.raises(fo.WiringError, match=r"use fo\.Needs\(\.\.\.\), or a tuple of several"):
            fo.task(same, needs=wrong)  # type: ignore[arg-type]
    with pytest.raises(fo.WiringError, match=r"needs 1 GPU, else 8 cores; give one fo\.Needs$"):
        fo.gang(fo.command(["true"], needs=given), mpi="mpich")


def test_a_gang_is_of_a_command_and_of_an_mpi() -> None:
    given: Any = 5
    with pytest.raises(WiringError, match=r"^gang: expected a task made by fo.command, given 5$"):
        fo.gang(given, mpi="mpich")
    wrong: tuple[Any, ...] = ("", 3, None, "direct")
    for mpi in wrong:
        with pytest.raises(WiringError, match=r"^gang: mpi=.*; there is openmpi, mpich, "):
            fo.gang(fo.command(["true"]), mpi=mpi)
