"""A guest whose programs do not wait long enough for themselves, as Ray's on a busy machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import flowos as fo
from flowos.drivers import Connection, GuestPlan, GuestWords
from flowos.model import Pairs, SliceRefused

HEAD = 'echo head >>"$0"; echo at here; exec sleep 600'
LIAR = 'echo "flowos-guest in $0" >&2; echo "flowos-guest in $0"; echo "flowos-guest in $1"; '
LIAR += "kill -STOP $PPID; echo at here; exec sleep 600"
WORKER = 'echo worker >>"$0"; [ "$(grep -c worker "$0")" -gt "$1" ] || { echo too soon; exit 1; }; '
WORKER += "echo joined; exec sleep 600"


@dataclass(frozen=True)
class Hasty:
    """A head, and a worker that gives up `times` times. Each writes a line into the log."""

    log: Path
    times: int
    name: str = "hasty"
    modules: tuple[str, ...] = ()
    remedy: str = ""
    complaints: Pairs = ()
    hasty: str = "too soon"
    certified: bool = False
    head_is_ours: bool = False

    def files(self, plan: GuestPlan) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    def head(self, plan: GuestPlan) -> GuestWords:  # noqa: ARG002
        return GuestWords(argv=("sh", "-c", HEAD, str(self.log)))

    def worker(self, plan: GuestPlan, address: str) -> GuestWords | None:  # noqa: ARG002
        return GuestWords(argv=("sh", "-c", WORKER, str(self.log), str(self.times)))

    def read_address(self, line: str) -> str:
        return line.removeprefix("at ") if line.startswith("at ") else ""

    def has_joined(self, line: str) -> bool:
        return line == "joined"

    def connection(self, plan: GuestPlan, address: str) -> Connection:  # noqa: ARG002
        return Connection(address=address, options={})


def test_a_program_that_was_hasty_is_begun_anew_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = Hasty(tmp_path / "log", times=2)
    monkeypatch.setattr("flowos.engine.guests._guest.guest_named", lambda _: hasty)
    with fo.slice(pool="local") as s, s.guest("hasty") as at:
        assert at.address == "here"
        assert len(at.folders) == 2
        assert not at.ended
    assert hasty.log.read_text().split() == ["head", "worker", "worker", "worker"]
    assert not any(Path(folder).exists() for folder in at.folders)


def test_one_that_fails_otherwise_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Hasty(tmp_path / "log", times=2, hasty="too late")
    monkeypatch.setattr("flowos.engine.guests._guest.guest_named", lambda _: other)
    with fo.slice(pool="local") as s, pytest.raises(SliceRefused, match="too soon"):
        s.guest("hasty")
    assert other.log.read_text().split() == ["head", "worker"]


@dataclass(frozen=True)
class Liar(Hasty):
    """A head that calls others' folders its own, and stops what started it: it is killed then."""

    folders: tuple[Path, Path] = (Path(), Path())

    def head(self, plan: GuestPlan) -> GuestWords:  # noqa: ARG002
        return GuestWords(argv=("sh", "-c", LIAR, *map(str, self.folders)))

    def worker(self, plan: GuestPlan, address: str) -> None:  # noqa: ARG002
        return None


def test_a_guest_that_is_killed_leaves_what_it_calls_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TemporaryDirectory(prefix="flowos-guest-", dir="/tmp") as another:
        liar = Liar(tmp_path / "log", times=0, folders=(tmp_path, Path(another)))
        monkeypatch.setattr("flowos.engine.guests._guest.guest_named", lambda _: liar)
        with fo.slice(pool="local") as s, s.guest("liar") as at:
            (own,) = at.folders
            assert Path(own).is_dir()
        assert not Path(own).exists()
        assert tmp_path.is_dir()
        assert Path(another).is_dir()
