"""A journal: what was appended is there in every process, whatever is killed or damaged."""

import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.engine import Journal, KeptResult, NoDigest, copy_file, file_digest
from flowos.engine.results._journal import HEADER, INLINE_BYTES, newest
from flowos.engine.results._record import frame_of
from flowos.model import SliceRefused


def result(number: int, body: bytes = b"body") -> KeptResult:
    return KeptResult(key=b"%032d" % number, label=f"task#{number}", when=float(number), body=body)


@pytest.fixture
def at(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def journal(at: Path) -> Iterator[Journal]:
    opened = Journal(at)
    yield opened
    opened.close()


def found(at: Path) -> tuple[list[int], list[str]]:
    """The numbers of the results that another process would find, and what it would say."""
    opened = Journal(at)
    try:
        return [int(each.key) for each in opened.records()], opened.notes
    finally:
        opened.close()


def test_results_are_there_when_it_is_opened_again(journal: Journal, at: Path) -> None:
    large = os.urandom(INLINE_BYTES + 1)
    journal.put(result(1))
    journal.put(result(2, large))
    again = Journal(at)
    for opened in (journal, again):
        assert opened.get(b"%032d" % 1) == result(1)
        kept = opened.get(b"%032d" % 2)
        assert kept is not None
        assert (kept.body, kept.label, kept.size_bytes) == (large, "task#2", len(large))
        assert opened.get(b"%032d" % 3) is None
    assert (at / "journal").stat().st_size < 1000
    assert again.notes == []
    again.close()


def test_two_see_what_the_other_appends(journal: Journal, at: Path) -> None:
    other = Journal(at)
    journal.put(result(1))
    other.put(result(2))
    journal.put(result(2, b"late"))  # the first one stays
    assert other.get(b"%032d" % 1) == result(1)
    assert journal.get(b"%032d" % 2) == result(2)
    assert found(at) == ([1, 2], [])
    other.close()


def test_any_cut_leaves_the_whole_records_before_it(at: Path) -> None:
    opened = Journal(at)
    ends = [len(HEADER)]
    for number in range(4):
        opened.put(result(number))
        ends.append((at / "journal").stat().st_size)
    opened.close()
    whole = (at / "journal").read_bytes()
    for length in range(0, len(whole), 3):
        (at / "journal").write_bytes(whole[:length])
        left = sum(end <= length for end in ends[1:])
        numbers, notes = found(at)
        assert numbers == list(range(left))
        damaged = length - ends[left] if length > len(HEADER) else 0
        say = f"journal {at}: {damaged} damaged bytes at its end were cut off; the rest is used"
        assert notes == ([say] if damaged > 0 else [])
        assert (at / "journal").stat().st_size == ends[left]
        opened = Journal(at)
        opened.put(result(9))
        opened.close()
        assert found(at) == ([*range(left), 9], [])


@pytest.mark.parametrize("block", [b"\0" * 40, b"\xff" * 40, b"\xf5foR" * 10])
def test_damage_in_the_middle_costs_what_it_covers(at: Path, block: bytes) -> None:
    opened = Journal(at)
    for number in range(6):
        opened.put(result(number, b"x" * 100))
    opened.close()
    whole = bytearray((at / "journal").read_bytes())
    frame = len(frame_of(result(0, b"x" * 100)))
    begin = len(HEADER) + 2 * frame - 10  # the end of one and the beginning of the next
    whole[begin : begin + len(block)] = block
    (at / "journal").write_bytes(whole)
    numbers, notes = found(at)
    assert numbers == [0, 3, 4, 5]
    assert notes == [
        f"journal {at}: {2 * frame} damaged bytes in it were left out; the rest is used"
    ]


def test_random_damage_never_gives_another_result(at: Path) -> None:
    opened = Journal(at)
    bodies = {number: os.urandom(50 + number) for number in range(20)}
    for number, body in bodies.items():
        opened.put(result(number, body))
    opened.close()
    whole = (at / "journal").read_bytes()
    draw = random.Random(7)
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            damaged[draw.randrange(len(HEADER), len(damaged))] ^= 1 << draw.randrange(8)
        (at / "journal").write_bytes(damaged)
        opened = Journal(at)
        kept = opened.records()
        assert len(kept) >= 16
        assert all(each.body == bodies[int(each.key)] for each in kept)
        opened.close()


def test_processes_at_once_lose_nothing(at: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from flowos.engine.results._journal import Journal\n"
        "from flowos.engine.results._record import KeptResult\n"
        "at, first = Path(sys.argv[1]), int(sys.argv[2])\n"
        "opened = Journal(at)\n"
        "for n in range(first, first + 300):\n"
        "    body = b'x' * (n % 200)\n"
        "    opened.put(KeptResult(key=b'%032d' % n, label='', when=0.0, body=body))\n"
        "print(len(opened.records()))\n"
    )
    words = [sys.executable, "-c", program, str(at)]
    started = [
        subprocess.Popen([*words, str(first)], stdout=subprocess.PIPE) for first in (0, 200, 400)
    ]
    assert all(each.wait(120) == 0 for each in started)
    numbers, notes = found(at)
    assert (sorted(numbers), notes) == (list(range(700)), [])
    for each in started:
        assert each.stdout is not None
        each.stdout.close()


def test_threads_at_once_lose_nothing(journal: Journal, at: Path) -> None:
    def put(first: int) -> None:
        for number in range(first, first + 100):
            journal.put(result(number))

    threads = [threading.Thread(target=put, args=(first,)) for first in (0, 50, 100)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (sorted(found(at)[0]), found(at)[1]) == (list(range(200)), [])


def test_a_damaged_value_is_no_result_and_can_be_replaced(journal: Journal, at: Path) -> None:
    large = result(1, os.urandom(INLINE_BYTES + 1))
    journal.put(large)
    (value,) = (at / "values").iterdir()
    value.write_bytes(b"other")
    assert journal.get(large.key) is None
    journal.put(large)
    kept = journal.get(large.key)
    assert kept is not None
    assert kept.body == large.body
    (value,) = (at / "values").iterdir()
    value.unlink()
    assert journal.get(large.key) is None


def test_files_and_folders_come_back_with_their_permissions(
    journal: Journal, tmp_path: Path
) -> None:
    file, folder = tmp_path / "run", tmp_path / "many"
    file.write_bytes(os.urandom(100_000))
    file.chmod(0o750)
    (folder / "deeper").mkdir(parents=True)
    (folder / "deeper/one").write_text("1")
    (folder / "link").symlink_to("deeper/one")
    for each in (file, folder):
        digest, size = journal.keep_file(each)
        assert journal.keep_file(each) == (digest, size)
        back = tmp_path / f"back-{each.name}"
        assert journal.restore_file(digest, back)
        assert file_digest(back) == file_digest(each) == digest
        assert back.stat().st_mode == each.stat().st_mode
    assert (tmp_path / "back-many/link").readlink() == Path("deeper/one")
    assert not journal.restore_file(b"\0" * 32, tmp_path / "none")
    assert not [each for each in (journal.path / "values").iterdir() if each.name[0] == "."]


def test_a_folders_digest_is_of_all_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    seen = {file_digest(folder)}
    (folder / "a").write_text("1")
    seen.add(file_digest(folder))
    (folder / "a").write_text("2")
    seen.add(file_digest(folder))
    (folder / "a").rename(folder / "b")
    seen.add(file_digest(folder))
    (folder / "c").mkdir()
    seen.add(file_digest(folder))
    (folder / "d").symlink_to("b")
    seen.add(file_digest(folder))
    assert len(seen) == 6
    os.mkfifo(folder / "e")
    with pytest.raises(NoDigest, match="is no regular file"):
        file_digest(folder)


def test_a_file_that_changes_at_once_has_another_digest(tmp_path: Path) -> None:
    file = tmp_path / "file"
    seen = set()
    for number in range(50):
        file.write_text(f"{number:02}")
        seen.add(file_digest(file))
    assert len(seen) == 50
    os.utime(file, (0, 0))
    old = file_digest(file)
    assert file_digest(file) == old


def test_a_copy_of_a_sparse_or_growing_file_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 20)
    copy_file(file, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"\0" * (1 << 20)
    (tmp_path / "copy").unlink()
    copy_file(Path("/proc/self/status"), tmp_path / "copy")  # the file system says that it is empty
    assert (tmp_path / "copy").read_text().startswith("Name:")


def test_what_is_not_kept_any_more_goes_with_its_values(journal: Journal, at: Path) -> None:
    other = Journal(at)
    for number in (1, 2, 3):
        journal.put(result(number, bytes([number]) * (INLINE_BYTES + 1)))
    assert journal.keep_only(lambda all_: [each for each in all_ if each.when == 2]) == 2
    assert [int(each.key) for each in journal.records()] == [2]
    assert len(list((at / "values").iterdir())) == 1
    other.put(result(4))  # into the new file, not the one that it had open
    kept = other.get(result(2).key)
    assert kept is not None
    assert kept.body == bytes([2]) * (INLINE_BYTES + 1)
    assert found(at) == ([2, 4], [])
    other.close()


def test_a_forked_child_has_a_lock_of_its_own(journal: Journal, at: Path) -> None:
    journal.put(result(1))
    child = os.fork()
    if child == 0:
        journal.put(result(2))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    journal.put(result(3))
    assert found(at) == ([1, 2, 3], [])


def test_a_full_disk_changes_nothing(journal: Journal, at: Path) -> None:
    journal.put(result(1))
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from flowos.engine.results._journal import Journal\n"
        "from flowos.engine.results._record import KeptResult\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "opened = Journal(Path(sys.argv[1]))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
        "try:\n"
        "    opened.put(KeptResult(key=b'%032d' % 2, label='', when=0.0, body=b'x' * 1000))\n"
        "except OSError as error:\n"
        "    print(error.strerror)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(at)], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("File too large\n", "")
    assert found(at) == ([1], [])


def test_what_others_may_write_is_refused(at: Path) -> None:
    Journal(at).close()
    assert at.stat().st_mode & 0o777 == 0o700
    for place in (at, at / "values", at / "journal"):
        mode = place.stat().st_mode
        place.chmod(mode | 0o020)
        with pytest.raises(SliceRefused, match=f"{place} may be written by others.*chmod go-w"):
            Journal(at)
        place.chmod(mode)
    Journal(at).close()


def test_what_belongs_to_another_user_is_refused(at: Path) -> None:
    Journal(at).close()
    theirs = at if os.geteuid() == 0 else Path("/usr")
    if theirs == at:
        os.chown(at, 1, 1)
    owner = theirs.stat().st_uid
    with pytest.raises(
        SliceRefused, match=f"{theirs} belongs to user {owner}, and results are read"
    ):
        Journal(theirs)


def test_a_journal_that_is_cut_while_it_is_open_is_read_again(journal: Journal, at: Path) -> None:
    for number in (1, 2):
        journal.put(result(number))
    size = (at / "journal").stat().st_size
    os.truncate(at / "journal", size - len(frame_of(result(2))))
    journal.put(result(3))
    assert [int(each.key) for each in journal.records()] == [1, 3]
    assert found(at) == ([1, 3], [])
    assert journal.size_bytes == 2 * len(frame_of(result(1)))


def test_the_newest_results_that_fit_are_chosen() -> None:
    results = [result(number) for number in (2, 3, 1)]
    room = 2 * results[0].total_bytes
    assert [each.when for each in newest(results, room)] == [3, 2]
    assert [each.when for each in newest(results, room - 1)] == [3]
    assert newest(results, 0) == []
    assert results[0].total_bytes == len(frame_of(results[0]))


def test_it_knows_how_many_results_each_task_has_of_each_code(journal: Journal) -> None:
    for number, label, code in ((1, "a", b"1"), (2, "a", b"2"), (3, "a", b"2"), (4, "b", b"1")):
        journal.put(replace(result(number), label=label, code=code * 8))
    assert journal.codes() == {"a": {b"1" * 8: 1, b"2" * 8: 2}, "b": {b"1" * 8: 1}}


def test_what_is_no_journal_is_refused_and_left_alone(at: Path) -> None:
    at.mkdir(mode=0o700)
    (at / "journal").write_text("dear diary")
    (at / "journal").chmod(0o600)
    with pytest.raises(SliceRefused, match="is none that this FlowOS writes; name another folder"):
        Journal(at)
    assert (at / "journal").read_text() == "dear diary"
    with pytest.raises(SliceRefused, match="it is no folder; name a folder"):
        Journal(at / "journal")
    (at / "journal").unlink()
    (at / "journal").symlink_to("/etc/passwd")
    with pytest.raises(SliceRefused, match="it cannot be opened: Too many levels"):
        Journal(at)


def test_a_damaged_header_loses_no_result(journal: Journal, at: Path) -> None:
    journal.put(result(1))
    journal.put(result(2))
    whole = (at / "journal").read_bytes()
    for header in (b"F" + HEADER[1:], HEADER[:-1], bytes(len(HEADER)), b""):
        (at / "journal").write_bytes(header + whole[len(HEADER) :])
        numbers, notes = found(at)
        assert numbers == ([1, 2] if len(header) == len(HEADER) else numbers[-1:])
        assert "damaged" in notes[0]


def test_a_pipe_in_place_of_a_value_is_not_waited_for(journal: Journal, at: Path) -> None:
    journal.put(result(1, os.urandom(INLINE_BYTES + 1)))
    (value,) = (at / "values").iterdir()
    value.unlink()
    os.mkfifo(value)
    assert journal.get(result(1).key) is None
    assert not journal.restore_file(bytes.fromhex(value.name), at / "copy")


def test_a_folder_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(SliceRefused, match=r"journal /proc/no/such: it cannot be created: "):
        Journal(Path("/proc/no/such"))


def test_a_copy_for_which_there_is_no_room_is_an_error_and_not_a_part(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(bytes(2 << 20))
        file.flush()
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
        try:
            with pytest.raises(OSError, match="File too large"):
                copy_file(Path(file.name), tmp_path / "copy")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
