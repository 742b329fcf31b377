"""A release: what is refused, what becomes of version, changelog and checksums, and that nothing is
there before all is."""

import hashlib
import json
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.waiting import comes

HERE = Path(__file__).parents[2]
TOOL = runpy.run_path(str(HERE / "tools/release.py"))
check, checksums, dated, noted, with_version = (
    TOOL[name] for name in ("check", "checksums", "dated", "noted", "with_version")
)
PYPROJECT = (HERE / "pyproject.toml").read_text()
CHANGELOG = (HERE / "CHANGELOG.md").read_text()
LOG = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [0.1.0] - 2026-01-01\n\n- old\n"


def text_of(path: Path) -> str:
    return (
        path.read_text() if path.suffix in (".py", ".md", ".cff", ".yaml", ".toml", ".txt") else ""
    )


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"version": "1.2"}, "VERSION=1.2: expected three numbers"),
        ({"version": "0.1.0", "tags": "v0.0.9\nv0.1.0"}, "there is a tag v0.1.0"),
        ({"version": "0.0.9"}, "VERSION=0.0.9: older than 0.1.0 of pyproject.toml"),
        ({"tags": "v0.9.0\nv0.10.0\nother"}, "VERSION=0.2.0: older than 0.10.0 of the last tag"),
        ({"version": "0.02.0"}, "VERSION=0.02.0: expected three numbers"),
        ({"changes": " M README.md\n?? new.py"}, "not committed:  M README.md, ?? new.py"),
        ({"changelog": LOG.replace("- new\n", "")}, "nothing is noted below"),
        ({"changelog": "# Changelog"}, "nothing is noted below"),
        (
            {"changelog": LOG.replace("- new\n", "### Added\n\n### Fixed\n")},
            "nothing is noted below",
        ),
        ({"before": "0.1.0.dev1"}, "pyproject.toml: version 0.1.0.dev1: expected three numbers"),
    ],
)
def test_what_is_not_to_be_released_is_refused(how: dict[str, str], why: str) -> None:
    given = {"version": "0.2.0", "before": "0.1.0", "tags": "", "changes": "", "changelog": LOG}
    check(**given)
    with pytest.raises(TOOL["ReleaseError"], match=re.escape(why)):
        check(**given | how)


def test_the_version_is_in_one_place() -> None:
    changed = with_version(PYPROJECT, "9.8.7")
    assert tomllib.loads(changed)["project"]["version"] == "9.8.7"
    assert len([*zip(PYPROJECT.splitlines(), changed.splitlines(), strict=True)]) > 100
    before = tomllib.loads(PYPROJECT)["project"]["version"]
    ours = [
        path for folder in ("src", "docs", "packaging") for path in (HERE / folder).rglob("*.*")
    ]
    named = [path for path in (*ours, *HERE.glob("*.*")) if f'"{before}"' in text_of(path)]
    assert [path.name for path in named] == ["pyproject.toml"]


def test_its_line_may_have_other_spaces_but_is_to_be_found() -> None:
    spaced = '[project]\nversion  =  "0.1.0" # of now\n'
    assert with_version(spaced, "9.8.7") == '[project]\nversion = "9.8.7" # of now\n'
    for other in ("[project]\nversion = '0.1.0'\n", f'[tool.x]\nversion = "1"\n{spaced}'):
        with pytest.raises(
            TOOL["ReleaseError"], match=r"^pyproject.toml: expected a line as version"
        ):
            with_version(other, "9.8.7")


def test_what_was_unreleased_is_of_the_version() -> None:
    assert noted(LOG) == "- new"
    assert "## [Unreleased]\n" in CHANGELOG
    after = dated(LOG, "0.2.0", "2026-02-03")
    assert noted(after) == ""
    assert "## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n- new\n\n## [0.1.0]" in after


def test_checksums_are_as_sha256sum_reads_them(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"wheel")
    (tmp_path / "SHA256SUMS").write_text("of before")
    assert checksums(tmp_path) == f"{hashlib.sha256(b'wheel').hexdigest()}  a.whl\n"
    (tmp_path / "SHA256SUMS").write_text(checksums(tmp_path))
    subprocess.run(("sha256sum", "--check", "--quiet", "SHA256SUMS"), cwd=tmp_path, check=True)


def wheel(folder: Path, name: str, version: str, needs: str = "") -> None:
    """A small one."""
    file = f"{name.replace('-', '_')}-{version}"
    said = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    said += f"Requires-Dist: {needs}\n" if needs else ""
    parts = {"METADATA": said, "WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n"}
    parts["RECORD"] = "".join(f"{file}.dist-info/{part},,\n" for part in (*parts, "RECORD"))
    with zipfile.ZipFile(folder / f"{file}-py3-none-any.whl", "w") as made:
        for part, text in parts.items():
            made.writestr(f"{file}.dist-info/{part}", text)


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """dist of a clone whose wheel, and one that pyproject.toml names, are in an environment."""
    work = tmp_path_factory.mktemp("release")
    clone, environment = work / "flowos", work / "environment"
    (clone / "dist").mkdir(parents=True)
    (clone / ".venv").symlink_to(sys.prefix)
    (clone / "pyproject.toml").write_text(with_version(PYPROJECT, "9.8.7"))
    wheel(work, "shtab", "99.1")
    wheel(clone / "dist", "flowos-hpc", "9.8.7", "shtab>=1.13")
    venv.create(environment)
    pip = (sys.executable, "-m", "pip", "--python", str(environment / "bin/python"))
    links = ("--no-index", "--find-links", str(clone / "dist"), "--find-links", str(work))
    subprocess.run((*pip, "install", "--quiet", *links, "flowos-hpc"), check=True)
    TOOL["list_contents"](clone, environment, "9.8.7")
    return clone / "dist"


def test_a_release_lists_what_its_wheel_brings_as_cyclonedx_has_it(listed: Path) -> None:
    text = (listed / "flowos_hpc-9.8.7.cdx.json").read_text()
    found = json.loads(text)
    wrong = JsonStrictValidator(SchemaVersion.from_version(found["specVersion"])).validate_str(text)
    assert wrong is None
    about, (part,) = found["metadata"]["component"], found["components"]
    assert (about["name"], about["version"]) == ("flowos-hpc", "9.8.7")
    assert [each["license"]["id"] for each in about["licenses"]] == ["Apache-2.0"]
    assert part["purl"] == "pkg:pypi/shtab@99.1"
    needs = {each["ref"]: each.get("dependsOn") for each in found["dependencies"]}
    assert needs[about["bom-ref"]] == [part["bom-ref"]]


def test_checksums_of_a_release_are_of_all_that_it_has(listed: Path) -> None:
    sums = (listed / "SHA256SUMS").read_text()
    files = [line.split("  ")[1] for line in sums.splitlines()]
    assert files == ["flowos_hpc-9.8.7-py3-none-any.whl", "flowos_hpc-9.8.7.cdx.json"]
    subprocess.run(("sha256sum", "--check", "--quiet", "SHA256SUMS"), cwd=listed, check=True)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(("git", *words), cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The tool, with what it changes and one that it calls, which never ends."""
    folder = tmp_path / "checkout"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools/release.py").write_text((HERE / "tools/release.py").read_text())
    (folder / "tools/wheels").write_text("#!/bin/sh\nsleep 1000 & echo $! >sleeps; wait\n")
    (folder / "tools/wheels").chmod(0o755)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    new = CHANGELOG.replace("## [Unreleased]\n", "## [Unreleased]\n\n- new\n", 1)
    (folder / "CHANGELOG.md").write_text(new)
    (folder / ".gitignore").write_text((HERE / ".gitignore").read_text())
    for words in ("init -q", "config user.name somebody", "config user.email somebody@example.org"):
        git(folder, *words.split())
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "new")
    return folder


def state(folder: Path) -> tuple[str, ...]:
    return tuple(git(folder, *words.split()) for words in ("status -s", "tag", "rev-parse HEAD"))


def said_by(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    tool = (sys.executable, "tools/release.py", *words)
    return subprocess.run(tool, cwd=folder, capture_output=True, text=True)


def test_a_dry_run_decides_all_and_changes_nothing(checkout: Path) -> None:
    before = state(checkout)
    done = said_by(checkout, "9.8.7", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "-> 9.8.7\ncommit: Version 9.8.7\n" in done.stdout
    assert "2 files changed" in done.stdout
    assert "tag: v9.8.7\n" in done.stdout
    assert state(checkout) == before
    clone = checkout / "build/release/flowos"
    assert tomllib.loads((clone / "pyproject.toml").read_text())["project"]["version"] == "9.8.7"
    (checkout / "new").touch()
    done = said_by(checkout, "9.8.7", "--dry-run")
    assert (done.returncode, done.stderr) == (1, "release: not committed: ?? new\n")


def test_a_dry_run_refuses_what_could_not_come_here(checkout: Path) -> None:
    (checkout / ".git/info/exclude").write_text("dist\n")
    (checkout / "dist").touch()
    done = said_by(checkout, "9.8.7", "--dry-run")
    assert (done.returncode, done.stderr[-37:]) == (1, "/dist: it is no folder: move it away\n")
    (checkout / "dist").unlink()
    (checkout / "dist").mkdir(mode=0o500)
    if os.geteuid():
        assert said_by(checkout, "9.8.7", "--dry-run").stderr.endswith("it cannot be written\n")
    git(checkout, "switch", "--quiet", "--detach")
    done = said_by(checkout, "9.8.7", "--dry-run")
    assert (done.returncode, done.stderr[:34]) == (1, "release: no branch is checked out,")


@pytest.mark.parametrize("version", ["-h", "'", "--dry-run", ""])
def test_make_hands_on_whatever_is_given(checkout: Path, version: str) -> None:
    (checkout / "Makefile").write_text((HERE / "Makefile").read_text())
    words = f"make --silent release DRY=1 {shlex.quote(f'VERSION={version}')}"
    done = subprocess.run(words, cwd=checkout, capture_output=True, text=True, shell=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"release: VERSION={version}: expected three numbers, as 0.2.0\n")


@pytest.fixture
def clone(checkout: Path, tmp_path: Path) -> Path:
    """In which a release of the checkout is made."""
    folder = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(checkout), str(folder))
    TOOL["commit"](folder, "9.8.7", checkout)
    (folder / "dist").mkdir()
    (folder / "dist/a.whl").touch()
    return folder


def test_commit_tag_and_files_come_together_or_not_at_all(checkout: Path, clone: Path) -> None:
    git(checkout, "commit", "--quiet", "--allow-empty", "--message", "made meanwhile")
    before = state(checkout)
    with pytest.raises(TOOL["ReleaseError"], match="git merge: fatal: Not possible"):
        TOOL["take"](clone, "9.8.7", checkout)
    assert state(checkout) == before
    assert not (checkout / "dist").exists()
    git(checkout, "reset", "--quiet", "--hard", "HEAD~1")
    made = TOOL["take"](clone, "9.8.7", checkout)
    assert [path.name for path in made.iterdir()] == ["a.whl"]
    assert git(checkout, "describe") == "v9.8.7"
    assert git(checkout, "log", "-1", "--format=%an %s") == "somebody Version 9.8.7"
    assert git(checkout, "status", "--short") == ""


def test_a_failed_step_takes_those_before_it_back(checkout: Path, clone: Path) -> None:
    git(checkout, "tag", "v9.8.7")
    before = state(checkout)
    with pytest.raises(TOOL["ReleaseError"], match=r"git update-ref: .* already exists"):
        TOOL["take"](clone, "9.8.7", checkout)
    assert state(checkout) == before
    git(checkout, "tag", "--delete", "v9.8.7")
    (checkout / "dist").touch()
    before = state(checkout)
    with pytest.raises(OSError, match="dist"):
        TOOL["take"](clone, "9.8.7", checkout)
    assert state(checkout) == before
    (checkout / "dist").unlink()
    (checkout / "dist/9.8.7").mkdir(parents=True)
    (checkout / "dist/9.8.7/old").touch()
    git(checkout, "commit", "--quiet", "--allow-empty", "--message", "made meanwhile")
    before = state(checkout)
    with pytest.raises(TOOL["ReleaseError"], match="git merge: fatal: Not possible"):
        TOOL["take"](clone, "9.8.7", checkout)
    assert state(checkout) == before
    assert [path.name for path in (checkout / "dist/9.8.7").iterdir()] == ["old"]
    git(checkout, "reset", "--quiet", "--hard", "HEAD~1")
    made = TOOL["take"](clone, "9.8.7", checkout)
    assert [path.name for path in made.iterdir()] == ["a.whl"]


INTERRUPTED = """
import os, runpy, sys
os.environ["RELEASE"] = str(os.getpid())
main = runpy.run_path("tools/release.py")["main"]
main.__globals__["_build"] = lambda clone, *_: (clone / "dist").mkdir()
sys.exit(main(["9.8.7"]))
"""


def test_a_signal_that_comes_too_late_says_so(checkout: Path) -> None:
    hook = checkout / ".git/hooks/post-merge"
    hook.write_text("#!/bin/sh\nkill -INT $RELEASE\n")
    hook.chmod(0o755)
    words = (sys.executable, "-c", INTERRUPTED)
    done = subprocess.run(words, cwd=checkout, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "release: SIGINT: too late: v9.8.7 is made\n")
    assert git(checkout, "describe") == "v9.8.7"
    assert (checkout / "dist/9.8.7").is_dir()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_release_that_is_stopped_leaves_nothing(checkout: Path, how: signal.Signals) -> None:
    before = state(checkout)
    tool = (sys.executable, "tools/release.py", "9.8.7")
    running = subprocess.Popen(tool, cwd=checkout, stderr=subprocess.PIPE, text=True)
    number = checkout / "build/release/flowos/sleeps"
    assert comes(lambda: number.exists() and number.read_text().endswith("\n"))
    sleeps = int(number.read_text())
    assert said_by(checkout, "9.8.7").stderr.startswith("release: another release is being made")
    running.send_signal(how)
    error = running.communicate()[1]
    if how == signal.SIGTERM:
        assert (running.returncode, error) == (130, "release: SIGTERM: nothing was changed\n")
    else:  # its tools go on, and the next release waits for them
        assert said_by(checkout, "9.8.7").returncode == 1
        os.killpg(os.getpgid(sleeps), signal.SIGKILL)
    assert comes(lambda: not Path(f"/proc/{sleeps}/stat").exists())
    assert state(checkout) == before
    assert comes(lambda: said_by(checkout, "9.8.7", "--dry-run").returncode == 0)
