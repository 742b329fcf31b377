"""[fpgas.NAME] of flowos.toml: what reaches an FPGA."""

import pytest

from flowos.model import Fpga, SettingsError, fpga_fields, read_settings, settings_schema


def read(text: str) -> tuple[Fpga, ...]:
    return read_settings(text, "flowos.toml").fpgas


def test_an_fpga_is_what_its_table_says() -> None:
    text = """
        [fpgas.arty]
        address = "10.0.0.7:2542"
        limit_seconds = 5
        [fpgas.ice]
        board = "ice40_generic"
        part = "ice40 8k"
        [fpgas.usb]
        cable = "ft2232"
        serial = "210319A2C3D4"
    """
    assert read(text) == (
        Fpga(name="arty", address="10.0.0.7:2542", limit_seconds=5.0),
        Fpga(name="ice", board="ice40_generic", part="ice40 8k"),
        Fpga(name="usb", cable="ft2232", serial="210319A2C3D4"),
    )
    assert read("") == ()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "fpgas.a.address: a Xilinx Virtual Cable has one"),
        ('adress = "10.0.0.7:1"', "fpgas.a.adress: no such key; did you mean 'address'?"),
        ('address = "host:2542"', "fpgas.a.address: 'host:2542': expected IPv4:PORT"),
        ('address = "10.0.0.256:1"', "expected IPv4:PORT"),
        ('address = "10.0.0.7:0"', "expected IPv4:PORT"),
        ('address = "10.0.0.7:65536"', "expected IPv4:PORT"),
        ('cable = "ft2232"\naddress = "10.0.0.7:1"', "a cable xvc-client has one, and no other"),
        ('board = "arty"\naddress = "10.0.0.7:1"', "a cable xvc-client has one, and no other"),
        ('address = "10.0.0.7:1"\nserial = "A"', "fpgas.a.serial: a cable on USB has one"),
        ('cable = "--help"', "fpgas.a.cable: '--help': expected letters"),
        ('board = "a b"', "fpgas.a.board: 'a b': expected letters"),
        ('board = "arty"\nlimit_seconds = 0', "fpgas.a.limit_seconds: 0.0: expected"),
        ('board = "arty"\nlimit_seconds = inf', "fpgas.a.limit_seconds: inf: expected"),
    ],
)
def test_what_cannot_be_names_its_key(line: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=r"flowos.toml:\d") as refused:
        read(f"[fpgas.a]\n{line}\n")
    assert complaint in str(refused.value)


def test_a_name_is_one_of_a_file() -> None:
    with pytest.raises(SettingsError, match="name: 'a b': expected letters"):
        read('[fpgas."a b"]\nboard = "arty"\n')
    for name in ("cpu", "gpu0", "gpu1-mig2", "opencl-x-0"):
        with pytest.raises(SettingsError, match=rf"fpgas.{name}.*a device that is found has it"):
            read(f'[fpgas.{name}]\nboard = "arty"\n')


@pytest.mark.parametrize("port", [1, 65535])
def test_a_virtual_cable_may_have_any_port(port: int) -> None:
    (found,) = read(f'[fpgas.a]\naddress = "10.0.0.7:{port}"\nlimit_seconds = 0.5')
    assert (found.address, found.limit_seconds) == (f"10.0.0.7:{port}", 0.5)


def test_every_key_is_in_the_schema() -> None:
    keys = {field.name for field in fpga_fields()}
    assert set(settings_schema()["$defs"]["Fpga"]["properties"]) == keys
