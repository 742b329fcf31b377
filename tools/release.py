"""Makes a release: version, changelog, tag, sdist, wheels, checksums and a list of what is in it.

`python tools/release.py 0.2.0 [--dry-run]`. All is done in a clone, build/release; only when it is
done do the commit, the tag and the files come here, so that what fails or is stopped leaves nothing
behind. --dry-run: decides all, makes commit and tag there, and stops before what takes minutes.
"""

import argparse
import datetime
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_UNRELEASED = "## [Unreleased]\n"
_VERSION = re.compile(r'(?m)^version[ \t]*=[ \t]*"[^"]*"')
_NUMBERS = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}")


class ReleaseError(Exception):
    """What stands in the way, in one line."""


def check(version: str, before: str, tags: str, changes: str, changelog: str) -> None:
    """Raises ReleaseError for what a release must not be made of. changes: of `git status`."""
    if not _NUMBERS.fullmatch(version):
        raise ReleaseError(f"VERSION={version}: expected three numbers, as 0.2.0")
    if not _NUMBERS.fullmatch(before):
        raise ReleaseError(f"pyproject.toml: version {before}: expected three numbers, as 0.1.0")
    if f"v{version}" in tags.split():
        raise ReleaseError(f"VERSION={version}: there is a tag v{version}")
    for other, where in ((last_of(tags), "the last tag"), (before, "pyproject.toml")):
        if other and _parts(version) < _parts(other):
            raise ReleaseError(f"VERSION={version}: older than {other} of {where}")
    if changes:
        raise ReleaseError(f"not committed: {', '.join(changes.split(chr(10)))}")
    if all(not line or line.startswith("#") for line in noted(changelog).splitlines()):
        raise ReleaseError("CHANGELOG.md: nothing is noted below [Unreleased]")


def last_of(tags: str) -> str:
    """The newest version that has a tag, "" if none has."""
    versions = [tag[1:] for tag in tags.split() if tag[0] == "v" and _NUMBERS.fullmatch(tag[1:])]
    return max(versions, key=_parts, default="")


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def noted(changelog: str) -> str:
    """What is below [Unreleased]."""
    _, found, rest = changelog.partition(_UNRELEASED)
    return re.split(r"(?m)^## \[", rest)[0].strip() if found else ""


def with_version(pyproject: str, version: str) -> str:
    """The one place that has it. Raises ReleaseError if that is no line of its own."""
    after = _VERSION.sub(f'version = "{version}"', pyproject, count=1)
    if tomllib.loads(after)["project"]["version"] != version:
        raise ReleaseError(
            'pyproject.toml: expected a line as version = "0.1.0", of [project] first'
        )
    return after


def dated(changelog: str, version: str, day: str) -> str:
    """What is unreleased is of this version now."""
    return changelog.replace(_UNRELEASED, f"{_UNRELEASED}\n## [{version}] - {day}\n", 1)


def checksums(folder: Path) -> str:
    """As `sha256sum --check` reads them."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    sums = ((hashlib.sha256(path.read_bytes()).hexdigest(), path.name) for path in files)
    return "".join(f"{digest}  {name}\n" for digest, name in sums)


def last_error(said: str) -> str:
    """The line of a tool's output that says most."""
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["it said nothing"]
    errors = [line for line in lines if re.search(r"(?i)\b(error|fatal)\b", line)]
    return (errors or lines)[-1][:200]


def release(version: str, *, dry: bool, folder: Path = HERE) -> Path:
    """The folder of what was made. Raises ReleaseError."""
    before = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["version"]
    changes, tags = git(folder, "status", "--porcelain"), git(folder, "tag", "--list")
    check(version, before, tags, changes, (folder / "CHANGELOG.md").read_text())
    _check_place(folder)
    with _alone(folder) as work:
        clone = work / "flowos"
        git(folder, "clone", "--quiet", "--no-tags", str(folder), str(clone))
        commit(clone, version, folder)
        if dry:
            _show(clone, before, version)
            return clone / "dist"
        _build(clone, folder, version)
        return take(clone, version, folder)


def _check_place(folder: Path) -> None:
    """Raises ReleaseError for where neither commit nor files could come."""
    branch = ("git", "symbolic-ref", "--quiet", "HEAD")
    if subprocess.run(branch, cwd=folder, capture_output=True).returncode:
        raise ReleaseError("no branch is checked out, so the commit would be on none: git switch")
    dist = folder / "dist"
    if dist.exists() and not dist.is_dir():
        raise ReleaseError(f"{dist}: it is no folder: move it away")
    if not os.access(dist if dist.exists() else folder, os.W_OK | os.X_OK):
        raise ReleaseError(f"{dist}: it cannot be written")


@contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """build/release, empty; for one release at a time, and for what one that was killed started.

    It stays until the next one, for its log.
    """
    work = folder / "build/release"
    work.mkdir(parents=True, exist_ok=True)
    with (folder / "build/release.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ReleaseError("another release is being made here, or still ends") from None
        os.set_inheritable(lock.fileno(), True)
        shutil.rmtree(work)
        work.mkdir()
        yield work


def commit(clone: Path, version: str, folder: Path) -> None:
    """The commit and the tag, by the person of folder."""
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    project, changelog = clone / "pyproject.toml", clone / "CHANGELOG.md"
    project.write_text(with_version(project.read_text(), version))
    changelog.write_text(dated(changelog.read_text(), version, day))
    who = {
        f"GIT_{role}_{what.upper()}": _config(folder, f"user.{what}")
        for role in ("AUTHOR", "COMMITTER")
        for what in ("name", "email")
    }
    title = f"Version {version}"
    git(clone, "commit", "--quiet", "--all", "--message", title, environment=who)
    git(clone, "tag", "--annotate", f"v{version}", "--message", title, environment=who)


def _config(folder: Path, key: str) -> str:
    words = ("git", "config", "--get", key)
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    return done.stdout.strip() or "flowos"


def git(folder: Path, *words: str, environment: Mapping[str, str] | None = None) -> str:
    """What it prints. Raises ReleaseError if it fails."""
    known = {**os.environ, **(environment or {})}
    done = subprocess.run(("git", *words), cwd=folder, env=known, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"git {words[0]}: {last_error(done.stderr)}")
    return done.stdout.rstrip()


def run(clone: Path, *words: str | Path) -> str:
    """The last line of what it prints; it ends with us. Raises ReleaseError if it fails."""
    log = clone.parent / f"{Path(words[0]).name}.log"
    with log.open("w") as out:
        tool = subprocess.Popen(
            words, cwd=clone, stdout=out, stderr=out, close_fds=False, start_new_session=True
        )
        try:
            code = tool.wait()
        except BaseException:
            os.killpg(tool.pid, signal.SIGTERM)
            tool.wait()
            raise
    said = log.read_text(errors="replace")
    if code:
        raise ReleaseError(f"{words[0]}: {last_error(said)} (all it said: {log})")
    return said.strip().rpartition("\n")[2]


def _show(clone: Path, before: str, version: str) -> None:
    print(f"version: {before} -> {version}")
    print(git(clone, "show", "--stat", "--format=commit: %s", "HEAD"))
    print(f"tag: {git(clone, 'describe', 'HEAD')}")
    print(f"to be made in dist/{version}: sdist, wheels, each tried, CycloneDX, SHA256SUMS")


def _build(clone: Path, folder: Path, version: str) -> None:
    """Wheels, each tried; what a first one brings with it; and checksums of all."""
    for name in (".venv", ".deps"):
        if (folder / name).exists():
            (clone / name).symlink_to((folder / name).resolve())
    dist, environment = clone / "dist", clone.parent / "environment"
    print("building sdist and wheels ...", flush=True)
    run(clone, "tools/wheels", dist)
    for line in reversed(_pythons(clone)):
        print(run(clone, "tools/smoke", line.split()[1], dist, environment), flush=True)
    list_contents(clone, environment, version)


def list_contents(clone: Path, environment: Path, version: str) -> None:
    """Adds to dist what an environment with the wheel has, as CycloneDX, then checksums of all.

    Raises ReleaseError.
    """
    dist = clone / "dist"
    bom = dist / f"flowos_hpc-{version}.cdx.json"
    tool, python = clone / ".venv/bin/cyclonedx-py", environment / "bin/python"
    how = ("--pyproject", "pyproject.toml", "--output-reproducible", "--of", "JSON")
    run(clone, tool, "environment", *how, "--output-file", bom, python)
    (dist / "SHA256SUMS").write_text(checksums(dist))


def _pythons(clone: Path) -> list[str]:
    said = subprocess.run("tools/pythons", cwd=clone, stdout=subprocess.PIPE, text=True, check=True)
    return said.stdout.splitlines()


def take(clone: Path, version: str, folder: Path) -> Path:
    """Brings commit, tag and files here; a signal waits until all are. Raises ReleaseError."""
    made = folder / "dist" / version
    git(folder, "fetch", "--quiet", "--no-tags", str(clone), f"refs/tags/v{version}")
    tag = git(clone, "rev-parse", f"refs/tags/v{version}")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        with ExitStack() as undo:
            git(folder, "update-ref", f"refs/tags/v{version}", tag, "")
            undo.callback(git, folder, "update-ref", "-d", f"refs/tags/v{version}", tag)
            _move(clone / "dist", made, undo)
            git(folder, "merge", "--quiet", "--ff-only", tag)  # last: it is whole or not at all
            undo.pop_all()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return made


def _move(dist: Path, made: Path, undo: ExitStack) -> None:
    """What is there without a tag, of a release that was taken back by hand, makes room."""
    if not made.parent.exists():
        made.parent.mkdir()
        undo.callback(made.parent.rmdir)
    if made.exists():
        aside = dist.with_name("dist-before")
        made.rename(aside)
        undo.callback(aside.rename, made)
    dist.rename(made)
    undo.callback(made.rename, dist)


def _stop(number: int, _: object) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def main(words: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("version", metavar="VERSION")
    options.add_argument("--dry-run", action="store_true")
    args = options.parse_args(words)
    for number in STOPS:
        signal.signal(number, _stop)
    try:
        made = release(args.version, dry=args.dry_run)
    except (ReleaseError, OSError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        is_there = git(HERE, "tag", "--list", f"v{args.version}")  # a signal may wait until all is
        said = f"too late: {is_there} is made" if is_there else "nothing was changed"
        print(f"release: {stop}: {said}", file=sys.stderr)
        return 130
    if args.dry_run:
        print("nothing was changed")
    else:
        print((made / "SHA256SUMS").read_text() + f"made: {made}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
