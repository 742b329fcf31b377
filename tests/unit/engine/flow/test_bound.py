"""Variables that say which devices a task has."""

from flowos.engine.flow._bound import device_variables, seen_devices
from flowos.model import Needs, with_choices


def test_devices_are_said_by_number() -> None:
    assert device_variables({"n1": ()}) == ()
    assert device_variables({"n1": (("fpga", (0, 2)), ("nic-2", (1,)))}) == (
        ("FLOWOS_DEVICES_FPGA", "0,2"),
        ("FLOWOS_DEVICES_NIC_2", "1"),
    )


def test_gpus_are_said_to_cuda_too() -> None:
    one = {"n1": (("gpu", ("GPU-1f", "3")), ("fpga", (1,)))}
    assert device_variables(one) == (
        ("FLOWOS_DEVICES_GPU", "GPU-1f,3"),
        ("FLOWOS_DEVICES_FPGA", "1"),
        ("CUDA_VISIBLE_DEVICES", "GPU-1f,3"),
    )
    several = {"n1": (("gpu", ("0",)),), "n2": (("gpu", ("1",)),)}
    assert device_variables(several) == (("FLOWOS_DEVICES_GPU", "n1:0 n2:1"),)


def test_devices_of_another_choice_are_not_seen() -> None:
    either = with_choices(Needs(gpus=1), [Needs(cores=8)])
    assert seen_devices(either, ()) == (("gpu", ()),)
    assert device_variables({"n1": seen_devices(either, ())}) == (
        ("FLOWOS_DEVICES_GPU", ""),
        ("CUDA_VISIBLE_DEVICES", ""),
    )
    one = (("gpu", ("1",)),)
    assert seen_devices(either, one) == one
    assert seen_devices(Needs(gpus=1), ()) == ()


def test_nodes_that_differ_are_said_one_by_one() -> None:
    same = {"n1": (("fpga", (1,)),), "n2": (("fpga", (1,)),)}
    assert device_variables(same) == (("FLOWOS_DEVICES_FPGA", "1"),)
    assert device_variables({**same, "n3": (("fpga", (0,)),)}) == (
        ("FLOWOS_DEVICES_FPGA", "n1:1 n2:1 n3:0"),
    )
