"""Command lines of the tools for images, and what their answers mean. No tool is run."""

from pathlib import PurePath

import pytest

from flowos.drivers.images import (
    apptainer,
    apt,
    buildah,
    charliecloud,
    mmdebstrap,
    skopeo,
    squashfs,
)
from flowos.model import ImageConfig

P = PurePath


def test_squashing_leaves_out_all_that_differs_between_two_makings() -> None:
    argv = squashfs.squash(P("/l/.x.part"), processors=2)
    assert argv[:3] == ("mksquashfs", "-", "/l/.x.part")
    for option in ("-tar", "-all-root", "-no-xattrs", "-noappend", "-exit-on-error"):
        assert option in argv
    joined = " ".join(argv)
    for pair in ("-mkfs-time 0", "-all-time 0", "-root-mode 0755", "-comp zstd", "-processors 2"):
        assert pair in joined


def test_a_squashfs_is_unpacked_and_looked_into() -> None:
    assert squashfs.unsquash(P("/a"), P("/b"), processors=1)[-3:] == ("-dest", "/b", "/a")
    assert squashfs.cat(P("/a"), "x/y") == ("unsquashfs", "-cat", "/a", "x/y")
    assert squashfs.listing(P("/a")) == ("unsquashfs", "-ll", "-d", "", "/a")
    assert squashfs.version() == ("mksquashfs", "-version")


def test_the_version_of_squashfs_tools_is_read() -> None:
    said = "mksquashfs version 4.5.1 (2022/03/17)\ncopyright (C) 2022"
    assert squashfs.read_version(said) == "4.5.1"
    assert squashfs.read_version("") == "unknown"


NODE = "create_inode: could not create character device /x/null, because you're not superuser!"
UNREAD_LAST = "FATAL ERROR: writer: failed to read/uncompress file out/bin/addpart"
UNREAD = f"zstd uncompress failed with error code 20\n{UNREAD_LAST}"
NO_BLOCK = "Can't find a valid SQUASHFS superblock on x"


@pytest.mark.parametrize(
    ("code", "stderr", "means"),
    [
        (0, "some warning", ""),
        (2, f"\n{NODE}\n", ""),
        (2, f"{NODE}\nwrite_file: failed", "write_file: failed"),
        (1, "Write failed because No space left on device", "the disk is full"),
        (1, "FATAL ERROR: Probably out of space on output filesystem", "the disk is full"),
        (1, f"FATAL ERROR: {NO_BLOCK}", f"it is damaged or truncated (FATAL ERROR: {NO_BLOCK})"),
        (1, "read_block: x", "it is damaged or truncated (read_block: x)"),
        (1, f"\t131072 39466\nx\n{UNREAD}", f"it is damaged or truncated ({UNREAD_LAST})"),
        (1, "one\ntwo\nthree", "three"),
        (-1, "", "exit -1"),
    ],
)
def test_a_failure_of_squashfs_tools_is_told_in_words(code: int, stderr: str, means: str) -> None:
    assert squashfs.complaint(code, stderr) == means


DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("word", "taken", "loopback"),
    [
        ("docker://127.0.0.1:5000/tools/fio:3", "docker://127.0.0.1:5000/tools/fio:3", True),
        ("docker://localhost/x", "docker://localhost/x", True),
        ("docker://[::1]:5000/x:1", "docker://[::1]:5000/x:1", True),
        ("docker://localhost.example.org/x", "docker://localhost.example.org/x", False),
        ("docker://127.0.0.1.example.org/x", "docker://127.0.0.1.example.org/x", False),
        (f"docker://h/x:1@{DIGEST}", f"docker://h/x@{DIGEST}", False),
        (f"docker://h:5000/a/b@{DIGEST}", f"docker://h:5000/a/b@{DIGEST}", False),
        ("docker://debian:12", "docker://debian:12", False),
    ],
)
def test_a_reference_is_read_and_only_loopback_may_be_without_tls(
    word: str, taken: str, loopback: bool
) -> None:
    reference = skopeo.read_reference(word)
    argv = skopeo.fetch(reference, P("/to"), architecture="arm64")
    assert argv[-2:] == (taken, "dir:/to")
    assert ("--src-tls-verify=false" in argv) == loopback
    assert argv[1:3] == ("--override-arch", "arm64")


@pytest.mark.parametrize(
    "word",
    ["docker://", "docker://-x", "docker://h/UP:1", "h/x", "docker://h/x@sha256", "docker://h/ x"],
)
def test_what_is_no_reference_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="expected docker://HOST/NAME"):
        skopeo.read_reference(word)


FATAL = 'time="2026-11-21T02:05:14Z" level=fatal msg="initializing source docker://{}"\n'


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("h/x:no: reading manifest no in h/x: manifest unknown: manifest unknown", "no such name"),
        ("h/x: dial tcp 127.0.0.1:9: connect: connection refused", "nothing answers there"),
        ("h/x: dial tcp: lookup h on 1.1.1.1:53: no such host", "its host is unknown"),
        ("h/x: unauthorized: authentication required", "log in first"),
        ("h/x: something new", "docker://h/x: something new"),
    ],
)
def test_a_failure_of_skopeo_is_told_in_words(said: str, means: str) -> None:
    assert means in skopeo.complaint(FATAL.format(said))


def test_a_silent_failure_of_skopeo_is_told_too() -> None:
    assert skopeo.complaint("") == "skopeo ended without a word"


def test_the_versions_of_the_tools_are_read() -> None:
    assert skopeo.version() == ("skopeo", "--version")
    assert skopeo.read_version("skopeo version 1.9.3\n") == "1.9.3"
    assert mmdebstrap.version() == ("mmdebstrap", "--version")
    assert mmdebstrap.read_version("mmdebstrap 1.3.5") == "1.3.5"
    assert apptainer.version("singularity") == ("singularity", "--version")
    assert apptainer.read_version("apptainer version 1.3.4") == "1.3.4"
    assert buildah.version(("podman", "--root", "x")) == ("podman", "--version")
    assert buildah.read_version("podman version 4.3.1") == "4.3.1"
    assert buildah.read_version("buildah version 1.28.2 (image-spec 1.0)") == "1.28.2"
    assert charliecloud.version(("python3", "ch-image")) == ("python3", "ch-image", "--version")
    assert charliecloud.read_version("0.31\n") == "0.31"
    for read in (skopeo, mmdebstrap, apptainer, buildah, charliecloud):
        assert read.read_version("") == "unknown"


@pytest.mark.parametrize(
    "said",
    [
        "E: Write error - write (28: No space left on device)",
        "E: You don't have enough free space in /var/tmp/x/var/cache/apt/archives/.",
    ],
)
def test_a_disk_that_is_too_small_for_a_suite_is_known_by_the_words_of_apt(said: str) -> None:
    assert mmdebstrap.is_full(said)
    assert not mmdebstrap.is_full("E: Could not connect to deb.debian.org:80")


def test_a_suite_is_made_in_a_user_namespace_or_by_root_itself() -> None:
    def argv(is_root: bool, packages: tuple[str, ...] = ()) -> tuple[str, ...]:
        return mmdebstrap.make(
            "bookworm",
            P("/w/s.tar"),
            packages=packages,
            sources=("deb http://m/debian bookworm main",),
            options=P("/w/apt.conf"),
            architecture="amd64",
            is_root=is_root,
        )

    user = argv(False, ("fio", "python3"))
    assert {"--mode=unshare", "--include=fio,python3", "--architectures=amd64"} <= {*user}
    assert user[-3:] == ("bookworm", "/w/s.tar", "deb http://m/debian bookworm main")
    assert "--aptopt=/w/apt.conf" in user
    assert "--mode=root" in argv(True)
    assert not any(word.startswith("--include") for word in argv(True))


@pytest.mark.parametrize(
    ("suite", "packages"),
    [("../x", ()), ("--help", ()), ("", ()), ("sid", ("--x",)), ("sid", ("A",))],
)
def test_a_suite_or_package_that_is_no_name_is_refused(
    suite: str, packages: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match="is no name of"):
        mmdebstrap.check(suite, packages)


def test_the_first_of_several_wrong_packages_is_named() -> None:
    with pytest.raises(ValueError, match="'A' is no name of a package"):
        mmdebstrap.check("sid", ("fio", "A", "--x"))


def test_names_of_packages_may_have_versions_and_architectures() -> None:
    mmdebstrap.check("bookworm", ("g++", "libc6:amd64", "fio=3.33-3", "libstdc++-12-dev"))


UPDATE_FAILED = "E: apt-get update --error-on=any -oAPT::Status-Fd=<$fd> failed"


@pytest.mark.parametrize(
    ("stderr", "means"),
    [
        (
            "I: x\nE: The repository 'http://m no Release' does not have a Release file.\n"
            + UPDATE_FAILED,
            "the archive has no such suite (The repository 'http://m no Release' does not have a "
            "Release file.)",
        ),
        (
            "E: Unable to locate package nosuch\nE: setup failed: x",
            "Unable to locate package nosuch",
        ),
        (f"{UPDATE_FAILED}\nE: run_chroot failed: x", UPDATE_FAILED.removeprefix("E: ")),
        ("something else\n", "something else"),
        ("E: " + "x" * 301, "x" * 300),
        ("y" + "x" * 300, "x" * 300),
        ("  Could not connect to m", "the package archive cannot be reached"),
        ("", "mmdebstrap ended without a word"),
    ],
)
def test_a_failure_of_mmdebstrap_is_told_in_words(stderr: str, means: str) -> None:
    assert mmdebstrap.complaint(stderr) == means


def test_who_has_no_subordinate_ids_learns_how_to_get_them() -> None:
    said = mmdebstrap.complaint("E: failed to parse /etc/subuid and /etc/subgid")
    assert "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER" in said


DEB822 = """\
Types: deb
# a comment
URIs: http://m/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb deb-src
URIs: http://m/debian-security
Suites: bookworm-security
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 x

Types: deb
Enabled: no
URIs: http://off/debian
Suites: bookworm
Components: main

Types: deb-src
URIs: http://src/debian
"""
KEY = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "


def test_the_machines_own_lines_serve_its_own_suite() -> None:
    assert apt.lines_for("bookworm", apt.read_deb822(DEB822)) == (
        f"deb {KEY}http://m/debian bookworm main",
        f"deb {KEY}http://m/debian bookworm-updates main",
        "deb http://m/debian-security bookworm-security main contrib",
    )


def test_a_field_of_deb822_goes_on_in_indented_lines() -> None:
    text = """Types: deb
URIs: http://m/debian
Suites: bookworm
 bookworm-updates
\tbookworm-backports
# Components: none
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
"""
    (source,) = apt.read_deb822(text)
    assert source.suites == ("bookworm", "bookworm-updates", "bookworm-backports")
    assert (source.components, source.signed_by) == (("main",), "")


def test_another_suite_of_the_same_archive_comes_from_the_same_mirror() -> None:
    assert apt.lines_for("trixie", apt.read_deb822(DEB822)) == (
        f"deb {KEY}http://m/debian trixie main",
        f"deb {KEY}http://m/debian trixie-updates main",
        "deb http://m/debian-security trixie-security main contrib",
    )
    assert apt.lines_for("sid", apt.read_deb822(DEB822)) == (f"deb {KEY}http://m/debian sid main",)


def test_one_line_sources_are_read_and_others_archives_are_left_out() -> None:
    text = """
    deb [arch=amd64 signed-by=/k/debian-archive-keyring.gpg] http://m/debian bookworm main # x
    deb [signed-by=/k/vendor.gpg] http://vendor/x bookworm main
    deb http://vendor/y bookworm stable
    deb-src http://m/debian bookworm main
    deb http://m
    # deb http://off/debian bookworm main
    """
    assert apt.lines_for("bookworm", apt.read_list(text)) == (
        "deb [signed-by=/k/debian-archive-keyring.gpg] http://m/debian bookworm main",
    )


def test_a_machine_without_apt_gives_no_lines() -> None:
    assert apt.lines_for("bookworm", ()) == ()


def test_only_options_of_the_network_are_taken_from_apt() -> None:
    dumped = (
        'APT "";\nAcquire::http::Proxy "http://p:3128";\nAcquire::Check-Valid-Until "false";\n'
        'Dir::Etc "etc/apt";\nAcquire::https::Proxy::host "DIRECT";\nDPkg::Post-Invoke "rm";\n'
    )
    assert apt.dump() == ("apt-config", "dump")
    assert apt.options_taken(dumped) == (
        'Acquire::http::Proxy "http://p:3128";\nAcquire::Check-Valid-Until "false";\n'
        'Acquire::https::Proxy::host "DIRECT";\n'
    )


@pytest.mark.parametrize("name", buildah.PROGRAMS)
def test_a_build_keeps_to_its_own_storage_and_shows_no_secret(name: str) -> None:
    program = buildah.start(name, P("/s"))
    assert program == (name, "--root", "/s/layers", "--runroot", "/s/run")
    argv = buildah.build(
        program,
        P("/c/Dockerfile"),
        P("/c"),
        id_file=P("/w/id"),
        architecture="amd64",
        arguments=("TOKEN",),
    )
    assert argv[:5] == program
    assert " ".join(argv[5:]) == (
        "build --isolation chroot --layers --platform linux/amd64 --iidfile /w/id "
        "--build-arg TOKEN --file /c/Dockerfile /c"
    )
    assert buildah.check(program)[5:] == ("info",)
    assert buildah.load(program, P("/a"))[5:] == ("pull", "--quiet", "oci-archive:/a")
    assert buildah.tag(program, "id", "n")[5:] == ("tag", "id", "n")
    assert buildah.drop_containers(program)[5:] == ("rm", "--all")
    every = ("images", "--all", "--quiet", "--no-trunc")
    assert buildah.images(program)[5:] == every
    assert buildah.images(program, "n")[5:] == (*every, "--filter", "reference=n")
    assert buildah.clear(program)[5:] == ("rmi", "--all", "--force")
    assert buildah.remove(program, ["a", "b"])[5:] == ("rmi", "--force", "a", "b")


def test_a_built_image_is_saved_without_compressing() -> None:
    podman, other = (buildah.start(name, P("/s")) for name in ("podman", "buildah"))
    assert " ".join(buildah.save(podman, "id", P("/o"))[5:]) == (
        "save --quiet --uncompressed --format=oci-dir --output /o id"
    )
    assert " ".join(buildah.save(other, "id", P("/o"))[5:]) == (
        "push --quiet --disable-compression id oci:/o"
    )


def test_charliecloud_builds_by_the_interpreter_that_has_its_modules() -> None:
    start = ("/usr/bin/python3", "/usr/bin/ch-image")
    argv = charliecloud.build(
        start, P("/c/D"), P("/c"), storage=P("/s"), name="x", arguments=("A",)
    )
    assert argv == (
        *(*start, "build", "--no-cache", "--storage", "/s", "--tag", "x", "--force"),
        *("--build-arg", "A", "--file", "/c/D", "/c"),
    )
    loaded = charliecloud.load(start, P("/a.tar"), storage=P("/s"), name="b")
    assert loaded[2:] == ("import", "--no-cache", "--storage", "/s", "/a.tar", "b")
    assert charliecloud.place(P("/s"), "a/b:1") == P("/s/img/a%b+1")


def test_what_charliecloud_knows_of_an_image_is_read() -> None:
    config = charliecloud.read_metadata(b'{"env": {"A": "1"}, "cwd": "/d", "arch": "amd64"}')
    assert config == ImageConfig(variables=(("A", "1"),), cwd=P("/d"))
    assert charliecloud.read_metadata(b"{}") == ImageConfig()
    for text in (b"[]", b'{"env": 7}'):
        with pytest.raises(ValueError, match="metadata cannot be read"):
            charliecloud.read_metadata(text)


def test_a_definition_file_is_built_into_a_folder() -> None:
    argv = apptainer.build("singularity", P("/d.def"), P("/w/o"))
    assert argv == (
        "singularity",
        "--silent",
        "build",
        "--fix-perms",
        "--sandbox",
        "/w/o",
        "/d.def",
    )
