"""Layers make one tree by the rules of OCI, and nothing of an archive leads out of it."""

from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowos.drivers.images import CONFIG
from flowos.drivers.images.tree import (
    Content,
    File,
    Folder,
    Symlink,
    TreeEntry,
    complete,
    found,
    merged,
    one_layer,
    put,
    total_bytes,
    walk,
    with_timeless_source,
)


def file(path: str, text: str = "", mode: int = 0o644, mtime: int = 0) -> TreeEntry:
    content = Content("", 0, len(text), text.encode())
    return TreeEntry(path=path, kind="file", mode=mode, mtime=mtime, content=content)


def folder(path: str, mode: int = 0o755) -> TreeEntry:
    return TreeEntry(path=path, kind="folder", mode=mode)


def symlink(path: str, target: str) -> TreeEntry:
    return TreeEntry(path=path, kind="symlink", target=target)


def hardlink(path: str, target: str) -> TreeEntry:
    return TreeEntry(path=path, kind="hardlink", target=target)


def listed(root: Folder) -> dict[str, str]:
    """path -> what it is, as a person would write it."""
    seen = {}
    for item in walk(root):
        node = item.node
        if isinstance(node, Folder):
            seen[item.path] = f"folder {node.mode:o}"
        elif isinstance(node, Symlink):
            seen[item.path] = f"-> {node.target}"
        elif item.first:
            seen[item.path] = f"= {item.first}"
        else:
            seen[item.path] = f"{node.content.text.decode()!r} {node.mode:o}"
    return seen


def test_an_upper_layer_replaces_adds_and_keeps() -> None:
    lower = [folder("etc", 0o700), file("etc/a", "1"), file("etc/b", "2")]
    upper = [folder("etc", 0o755), file("./etc/a", "new", 0o600), file("/top", "t")]
    assert listed(merged([lower, upper])) == {
        "etc": "folder 755",
        "etc/a": "'new' 600",
        "etc/b": "'2' 644",
        "top": "'t' 644",
    }


def test_a_whiteout_hides_what_is_below_and_not_what_its_own_layer_brings() -> None:
    lower = [file("d/a"), file("d/b"), file("x/deep/c")]
    upper = [file("d/a", "again"), file("d/.wh.a"), file("d/.wh.b"), file(".wh.x"), file("y/.wh.z")]
    assert listed(merged([lower, upper])) == {"d": "folder 755", "d/a": "'again' 644"}


def test_an_opaque_folder_hides_all_below_wherever_the_mark_stands_in_its_layer() -> None:
    upper = [file("d/new"), file("d/.wh..wh..opq")]
    seen = listed(merged([[file("d/old"), file("d/sub/old")], upper]))
    assert seen == {"d": "folder 755", "d/new": "'' 644"}


def test_a_whiteout_for_what_is_not_there_is_no_error() -> None:
    assert listed(merged([[file("none/.wh.a"), file(".wh..wh.plnk/x")]])) == {
        ".wh..wh.plnk": "folder 755",
        ".wh..wh.plnk/x": "'' 644",
    }


def test_a_plain_archive_may_have_files_that_look_like_whiteouts() -> None:
    assert listed(one_layer([folder(".", 0o700), file("a"), file(".wh.a")])) == {
        ".wh.a": "'' 644",
        "a": "'' 644",
    }


def test_the_root_has_the_mode_that_the_last_layer_says() -> None:
    assert merged([[folder("./", 0o700)], [folder("/", 0o711)]]).mode == 0o711
    assert one_layer([folder(".", 0o750)]).mode == 0o750


def test_a_hard_link_is_the_same_file_under_its_first_name() -> None:
    tree = merged([[file("b", "text", 0o755), hardlink("a", "./b")], [hardlink("z/c", "/b")]])
    assert listed(tree) == {
        "a": "'text' 755",
        "b": "= a",
        "z": "folder 755",
        "z/c": "= a",
    }
    assert total_bytes(tree) == 4


@pytest.mark.parametrize("target", ["none", "d", "none/deeper", "."])
def test_a_hard_link_to_what_is_no_file_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="'h' is a hard link to"):
        merged([[folder("d"), hardlink("h", target)]])


@pytest.mark.parametrize("path", ["../etc/passwd", "a/../../b", "/.."])
def test_an_entry_that_leads_out_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="leads out of the image"):
        merged([[file(path)]])
    with pytest.raises(ValueError, match="leads out of the image"):
        one_layer([hardlink("x", path)])


@pytest.mark.parametrize("target", ["/../../..", "../../..", "/", "a/../.."])
def test_a_link_leads_nowhere_but_inside(target: str) -> None:
    tree = merged([[folder("a"), symlink("out", target)], [file("out/etc/passwd", "root")]])
    assert listed(tree)["etc/passwd"] == "'root' 644"


def test_a_file_behind_a_link_to_a_folder_lands_in_that_folder() -> None:
    lower = [folder("usr/bin"), symlink("bin", "usr/bin"), symlink("deep", "usr/../bin")]
    seen = listed(merged([lower, [file("bin/sh", "s"), file("deep/ls"), file("bin/.wh.no")]]))
    assert seen["usr/bin/sh"] == "'s' 644"
    assert "usr/bin/ls" in seen
    assert seen["bin"] == "-> usr/bin"


def test_a_folder_takes_the_place_of_a_link_and_a_file_that_of_a_folder() -> None:
    lower = [symlink("a", "b"), folder("b"), file("b/x"), folder("c"), file("c/y")]
    assert listed(merged([lower, [folder("a"), file("c", "f")]])) == {
        "a": "folder 755",
        "b": "folder 755",
        "b/x": "'' 644",
        "c": "'f' 644",
    }


def test_a_loop_of_links_and_a_file_in_the_way_are_refused() -> None:
    with pytest.raises(ValueError, match="loop of symbolic links"):
        merged([[symlink("a", "b"), symlink("b", "a"), file("a/x")]])
    with pytest.raises(ValueError, match="'f/x' lies in 'f', which is no folder"):
        merged([[file("f"), file("f/x")]])


def test_found_follows_links_as_after_chroot() -> None:
    links = [symlink("bin", "usr/bin"), symlink("usr/bin/sh", "dash"), symlink("abs", "/bin/sh")]
    tree = one_layer([folder("usr/bin"), *links, file("usr/bin/dash", "d"), symlink("up", "..")])
    dash = found(tree, "usr/bin/dash")
    assert isinstance(dash, File)
    assert found(tree, "/bin/sh") is dash
    assert found(tree, "abs") is dash
    assert found(tree, "") is tree
    assert found(tree, "none/at/all") is None
    assert found(tree, "bin/none") is None


@pytest.mark.parametrize(("links", "ends"), [(39, True), (41, False)])
def test_links_are_followed_about_forty_times_as_by_the_kernel(links: int, ends: bool) -> None:
    chain = [symlink(f"l{n}", f"l{n + 1}") for n in range(links - 1)]
    chain += [symlink(f"l{links - 1}", "end"), folder("end"), file("end/x")]
    tree = one_layer(chain)
    assert isinstance(found(tree, "l0"), Folder) is ends
    assert isinstance(found(tree, "l0/x"), File) is ends


def test_found_gives_up_on_a_loop() -> None:
    tree = one_layer([symlink("a", "b"), symlink("b", "a")])
    assert found(tree, "a") is None
    assert found(tree, "a/x") is None


def test_the_order_of_a_tree_is_that_of_its_names_however_it_came() -> None:
    one = one_layer([file("b/2"), file("a"), file("b/1"), folder("c")])
    two = one_layer([folder("c"), file("b/1"), file("b/2"), file("a")])
    assert [item.path for item in walk(one)] == [item.path for item in walk(two)]
    assert [item.path for item in walk(one)] == ["a", "b", "b/1", "b/2", "c"]


def test_an_archive_deeper_than_pythons_stack_is_walked() -> None:
    path = "/".join("d" for _ in range(5000))
    assert sum(1 for _ in walk(one_layer([file(path)]))) == 5000


def test_a_pyc_knows_the_time_of_the_source_beside_it() -> None:
    entries = [
        file("lib/m.py", mtime=7),
        file("lib/__pycache__/m.cpython-311.pyc"),
        file("lib/__pycache__/gone.cpython-311.pyc"),
        file("lib/__pycache__/m.txt"),
        file("lib/m.pyc"),
        file("etc/site.py", mtime=9),
        symlink("lib/site.py", "/etc/site.py"),
        file("lib/__pycache__/site.cpython-311.pyc"),
        file("top.py", mtime=5),
        file("__pycache__/top.cpython-311.pyc"),
    ]
    times = {item.path: item.source_mtime for item in walk(one_layer(entries)) if item.source_mtime}
    assert times == {
        "__pycache__/top.cpython-311.pyc": 5,
        "lib/__pycache__/m.cpython-311.pyc": 7,
        "lib/__pycache__/site.cpython-311.pyc": 9,
    }


def test_a_valid_pyc_stays_valid_when_every_time_becomes_zero() -> None:
    head = b"\xa7\x0d\x0d\x0a" + bytes(4) + (7).to_bytes(4, "little") + b"size"
    assert with_timeless_source(head, 7) == head[:8] + bytes(4) + b"size"
    assert with_timeless_source(head, 7 + (1 << 32)) == head[:8] + bytes(4) + b"size"


@pytest.mark.parametrize(
    "head",
    [
        b"\xa7\x0d\x0d\x0a" + bytes(4) + (8).to_bytes(4, "little") + b"size",
        b"\xa7\x0d\x0d\x0a" + b"\1\0\0\0" + (7).to_bytes(4, "little") + b"size",
        b"short",
    ],
    ids=["stale", "by its hash", "cut off"],
)
def test_another_pyc_is_left_as_it_is(head: bytes) -> None:
    assert with_timeless_source(head, 7) == head


def test_an_image_of_ours_has_its_configuration_and_every_mount_point() -> None:
    tree = Folder()
    complete(tree, b"{}")
    seen = listed(tree)
    assert seen[CONFIG] == "'{}' 644"
    assert total_bytes(tree) == 2
    assert {item.node.mtime for item in walk(tree) if isinstance(item.node, File)} == {0}
    assert seen["tmp"] == seen["var/tmp"] == "folder 1777"
    assert seen["mnt/flowos"] == seen["proc"] == "folder 755"
    assert seen["etc/resolv.conf"] == "'' 644"
    assert {"proc", "sys", "dev", "home", "opt", "root", "run", "scratch", "work", "data"} <= {
        *seen
    }
    complete(tree, b"{}")
    assert listed(tree) == seen


def test_mount_points_that_are_there_stay_and_links_in_their_place_go() -> None:
    links = [
        symlink("tmp", "var/tmp"),
        symlink("etc/resolv.conf", "../run/stub"),
        symlink("etc/hosts", "hosts.real"),
        symlink("opt", "usr/opt"),
        symlink("scratch", "/nfs/none"),
        symlink(".flowos", "etc"),
    ]
    files = [file("etc/hosts.real", "h"), file("etc/passwd", "p", 0o600), folder("usr/opt")]
    tree = one_layer([*links, *files, file("home/x"), folder("dev", 0o700)])
    complete(tree, b"{}")
    seen = listed(tree)
    assert seen["tmp"] == "folder 1777"
    assert seen["etc/resolv.conf"] == "'' 644"
    assert (seen["etc/hosts"], seen["etc/hosts.real"]) == ("'h' 644", "= etc/hosts")
    assert seen["etc/passwd"] == "'p' 600"
    assert (seen["opt"], seen["scratch"]) == ("-> usr/opt", "folder 755")
    assert (seen[".flowos"], seen["home/x"], seen["dev"]) == ("folder 755", "'' 644", "folder 700")


@pytest.mark.parametrize(
    ("cwd", "seen"),
    [
        ("/w", {"w": "folder 755"}),
        ("/a/../w/x", {"w": "folder 755", "w/x": "folder 755"}),
        ("/link/x", {"gone": "folder 755", "gone/x": "folder 755"}),
        ("/link", {"gone": "folder 755"}),
        ("/bin", {"bin": "folder 700"}),
        ("/etc/passwd", {"etc/passwd": "'' 644"}),
        ("/etc/passwd/x", {"etc/passwd": "'' 644"}),
        ("w", {}),
    ],
)
def test_the_folder_to_start_in_is_created_where_nothing_is(cwd: str, seen: dict[str, str]) -> None:
    before = [folder("a"), folder("bin", 0o700), symlink("link", "/gone")]
    tree, plain = one_layer(before), one_layer(before)
    complete(tree, b"{}", PurePath(cwd))
    complete(plain, b"{}")
    assert listed(tree) == listed(plain) | seen


@pytest.mark.parametrize(
    "entry", [file("n" * 255), file("d/" * 2047 + "n"), symlink("l", "/" * 4095)]
)
def test_the_longest_names_that_linux_reads_are_taken(entry: TreeEntry) -> None:
    complete(one_layer([entry]), b"{}")


@pytest.mark.parametrize(
    "entries",
    [
        [file("\u00e9" * 128)],
        [file("d/" * 2048 + "n")],
        [symlink("deep", "d/" * 2000), file("deep/" + "d/" * 100 + "n")],
        [symlink("l", "n" * 256), file("l/x")],
        [symlink("l", "")],
        [symlink("l", "/" * 4096)],
        [symlink("l", "a\0b")],
        [file("a\0b")],
    ],
)
def test_what_a_mounted_image_cannot_show_is_refused(entries: list[TreeEntry]) -> None:
    with pytest.raises(ValueError, match=r"^entry '.{1,121} (has|is) a .*") as told:
        complete(one_layer(entries), b"{}")
    assert len(str(told.value)) < 300


def test_put_makes_what_is_above() -> None:
    tree = Folder()
    put(tree, "a/b/c", Symlink("x"))
    assert listed(tree) == {"a": "folder 755", "a/b": "folder 755", "a/b/c": "-> x"}


NAMES = st.sampled_from(["a", "b", ".", "..", "", "c", ".wh.a", ".wh..wh..opq"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
ENTRIES = st.one_of(
    st.builds(file, PATHS),
    st.builds(folder, PATHS),
    st.builds(symlink, PATHS, PATHS),
    st.builds(hardlink, PATHS, PATHS),
)


@given(st.lists(st.lists(ENTRIES, max_size=8), max_size=4))
def test_whatever_an_archive_says_its_tree_has_plain_names_or_it_is_refused(
    layers: list[list[TreeEntry]],
) -> None:
    try:
        tree = merged(layers)
        complete(tree, b"{}")
    except ValueError:
        return
    paths = [item.path for item in walk(tree)]
    assert len(set(paths)) == len(paths)
    assert all(part not in ("", ".", "..") for path in paths for part in path.split("/"))
