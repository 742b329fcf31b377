"""Variables that say which devices a task has."""

from flowos.engine.flow._bound import device_variables


def test_devices_are_said_by_number() -> None:
    assert device_variables({"n1": ()}) == ()
    assert device_variables({"n1": (("fpga", (0, 2)), ("nic-2", (1,)))}) == (
        ("FLOWOS_DEVICES_FPGA", "0,2"),
        ("FLOWOS_DEVICES_NIC_2", "1"),
    )


def test_nodes_that_differ_are_said_one_by_one() -> None:
    same = {"n1": (("fpga", (1,)),), "n2": (("fpga", (1,)),)}
    assert device_variables(same) == (("FLOWOS_DEVICES_FPGA", "1"),)
    assert device_variables({**same, "n3": (("fpga", (0,)),)}) == (
        ("FLOWOS_DEVICES_FPGA", "n1:1 n2:1 n3:0"),
    )
