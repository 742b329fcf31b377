"""Tasks that need FPGAs which flowos.toml names: no other program has them meanwhile."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import HeldDevice, here
from flowos.model import Fpga
from tests.bitstreams import SYNC, xilinx_bit
from tests.tap import ARTIX7, Board, board

FPGA = fo.Needs(devices={"fpga": 1})
SAY = ["sh", "-c", "echo ${FLOWOS_DEVICES_FPGA:-none}"]


def saying(needs: fo.Needs | list[fo.Needs]) -> fo.Flow:
    """Which FPGA its one task has."""
    return fo.flow_output(fo.command(SAY, stdout="said", needs=needs, name="which")())


WHICH = saying(FPGA)


@pytest.fixture
def boards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Board, Board]]:
    settings = tmp_path / "flowos.toml"
    monkeypatch.setenv("FLOWOS_CONFIG", str(settings))
    monkeypatch.setenv("FLOWOS_DEVICES_DIR", str(tmp_path / "locks"))
    with board(ARTIX7) as one, board(ARTIX7) as two:
        tables = (("one", one), ("two", two))
        settings.write_text(
            "".join(f'[fpgas.{n}]\naddress = "127.0.0.1:{b.port}"\n' for n, b in tables)
        )
        yield one, two
    here().know_fpgas(())


def held(name: str, made: Board) -> HeldDevice:
    """As another program has it."""
    fpga = Fpga(name=name, address=f"127.0.0.1:{made.port}")
    (device,) = here().devices([fpga], ("openfpgaloader",), ask=False)
    return HeldDevice(device)


def test_a_task_is_told_its_fpga_and_slices_give_it_back(boards: tuple[Board, Board]) -> None:
    for pool in ({}, {"pool": "local"}):
        with fo.slice(WHICH, **pool) as s:  # type: ignore[call-overload]
            assert s.run() == ["one\n"]
    held("one", boards[0]).release()


def test_a_task_loads_the_fpga_that_its_program_holds(
    boards: tuple[Board, Board], tmp_path: Path
) -> None:
    file = tmp_path / "a.bit"
    file.write_bytes(xilinx_bit("7a35tcpg236", SYNC + bytes(999)))
    load = f"{sys.executable} -m flowos device load {file} --device $FLOWOS_DEVICES_FPGA"
    loads = fo.command(["sh", "-c", load], stdout="said", needs=FPGA)
    with fo.slice(fo.flow_output(loads())) as s:
        assert "one (xc7a35): loaded" in str(s.run()[0])
    assert boards[0].done


@pytest.mark.usefixtures("boards")
def test_slices_of_one_program_share_what_it_holds() -> None:
    with (
        fo.slice(WHICH) as first,
        fo.slice(WHICH) as second,
    ):
        assert first.run() == second.run() == ["one\n"]
        first.free()
        assert second.run() == ["one\n"]


def test_what_another_program_has_is_left_to_it(boards: tuple[Board, Board]) -> None:
    with held("one", boards[0]) as mine:
        with fo.slice(WHICH) as s:
            assert s.run() == ["two\n"]
        with held("two", boards[1]):
            with pytest.raises(fo.SliceRefused) as refused:
                fo.slice(WHICH)
            assert mine.record.owner is not None
            owner = f"in use by process {mine.record.owner.pid} of {mine.record.owner.user}"
            assert "task 'which' needs 1 fpga, node " in str(refused.value)
            assert f"one: {owner}" in str(refused.value)
            assert f"two: {owner}" in str(refused.value)
            with fo.slice(saying([FPGA, fo.Needs(cores=1)])) as s:
                assert s.run() == ["none\n"]
    with fo.slice(WHICH) as s:
        assert s.run() == ["one\n"]


def test_a_board_that_fails_is_passed_over(boards: tuple[Board, Board]) -> None:
    boards[0].part = replace(ARTIX7, idcode=0)
    for _ in range(2):  # the second time it is out of use
        with fo.slice(WHICH) as s:
            assert s.run() == ["two\n"]
    with pytest.raises(fo.SliceRefused, match=r"needs 2 fpga, node .* one: taken out of use: "):
        fo.slice(saying(fo.Needs(devices={"fpga": 2})))
