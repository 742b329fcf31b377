"""`flowos doctor`: collects facts, asks the probes, tries the runtimes, and reports what works."""

import os
from collections.abc import Callable, Iterator

from flowos import engine
from flowos._dataclasses import dataclass
from flowos._user_folders import HomeFolderError, cache_folder
from flowos.drivers import RUNTIMES, Runtime
from flowos.model import EngineMissing, Facts, MeasurementRequest
from flowos.operations._extras import extras
from flowos.operations._facts import facts, facts_on
from flowos.operations._slice import slice_
from flowos.probes import pool_words, probes_for
from flowos.probes.doctor import Check, can_measure, diagnose


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The node, its checks, and whether `flowos measure` can measure anything."""

    facts: Facts
    checks: tuple[Check, ...]
    can_measure: bool


def doctor(request: MeasurementRequest | None = None, pool: str = "") -> Diagnosis:
    """Check this node without measuring or changing anything; takes some seconds.

    pool: check a node of this pool instead, which is held meanwhile.
    """
    asked = request or MeasurementRequest()
    if not pool:
        here, found = engine.here(), facts(asked)
        bodies = (*engine_checks(found), *compiler_checks(), _verilog(), *card_checks())
        bodies = (*bodies, *language_checks(), *tool_checks())
        checks = (_cache(), _energy(here), *extras(), *bodies, *_runtimes(here), *_left_alone())
        return _diagnosis(found, asked, checks)
    with slice_(pool=pool) as held:
        (node,) = held.held.nodes
        return _diagnosis(facts_on(node, asked, pool_words(pool, 1)), asked, tuple(_runtimes(node)))


def _diagnosis(node: Facts, request: MeasurementRequest, others: tuple[Check, ...]) -> Diagnosis:
    checks = (*diagnose(node, [p for p in probes_for() if not p.info.asked], request), *others)
    return Diagnosis(facts=node, checks=checks, can_measure=can_measure(checks))


def _runtimes(node: engine.Node) -> Iterator[Check]:
    """A check for each runtime, which was tried with a tiny image since the node was booted."""
    tried = node.facts()
    for name, runtime in RUNTIMES.items():
        if name != "bare":
            yield _runtime(runtime, tried)


def _cache() -> Check:
    """Where the programs that measure are compiled."""
    remedy = "name another: export XDG_CACHE_HOME=/var/tmp/$USER"
    try:
        folder = cache_folder()
    except HomeFolderError as error:
        says = str(error)
    else:
        there = next(each for each in (folder, *folder.parents) if each.exists())
        if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
            return Check(group="use", name="cache folder", works=True, says=str(folder))
        says = f"{folder} cannot be written"
    says += ": no program that measures can be compiled"
    return Check(
        group="use", name="cache folder", works=False, says=says, remedy=remedy, needed=True
    )


def _energy(node: engine.Node) -> Check:
    counters = node.look().energy
    if counters:
        says = ", ".join(counter.name for counter in counters)
        return Check(group="use", name="energy of processors", works=True, says=says)
    return Check(
        group="use",
        name="energy of processors",
        works=False,
        says="no counter (RAPL) can be read, as in most virtual machines: no flop/J is shown",
        remedy="if there is one, as root: chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj",
    )


def engine_checks(node: Facts) -> Iterator[Check]:
    """What runs tasks in OpenCL; where there are GPUs, what compiles those in CUDA."""
    devices = engine.opencl_devices
    yield _engine("OpenCL", lambda: ", ".join(f"{n} ({about})" for n, about in devices().items()))
    if node.gpus:
        yield _engine("CUDA", lambda: f"NVRTC {engine.nvrtc_version()}")


def _engine(name: str, ask: Callable[[], str]) -> Check:
    try:
        return Check(group="use", name=name, works=True, says=ask())
    except EngineMissing as missing:
        why, _, remedy = str(missing).rpartition(": ")
        says = f"tasks of fo.{name.lower()} do not run: {why}"
        return Check(group="use", name=name, works=False, says=says, remedy=remedy)


def compiler_checks() -> Iterator[Check]:
    """What `fo.cxx` needs besides a C compiler."""
    for language, spoken in (("c++", "C++"), ("fortran", "Fortran")):
        name = f"bodies in {spoken}"
        try:
            says = f"compiled by {engine.compiler_path(language)}"
        except EngineMissing as missing:
            says, _, how = str(missing).partition(": ")
            remedy = f"as root: apt-get {how}"
            yield Check(group="use", name=name, works=False, says=says, remedy=remedy)
        else:
            yield Check(group="use", name=name, works=True, says=says)


def card_checks() -> Iterator[Check]:
    """What opens the cards behind XDMA that this node has."""
    for port, why in engine.xdma_cards():
        says, _, remedy = why.partition(": ")
        says = f"no task of fo.hdl reaches it: {says}" if why else "for tasks of fo.hdl"
        yield Check(group="use", name=f"card {port}", works=not why, says=says, remedy=remedy)


def _verilog() -> Check:
    """What `fo.hdl` and `fo.bitstream` need."""
    missing, name = engine.hdl_packages(), "bodies in Verilog"
    if not missing:
        says = "simulated, and made bitstreams for boards with an iCE40"
        return Check(group="use", name=name, works=True, says=says)
    return Check(
        group="use",
        name=name,
        works=False,
        says="they are not simulated"
        if "verilator" in missing
        else "they are simulated; no bitstream is made of them",
        remedy=f"as root: apt-get install {' '.join(missing)}",
    )


def language_checks() -> Iterator[Check]:
    """What `fo.r` and `fo.julia` need."""
    package, download = engine.r_package(), engine.julia_download()
    yield _language("R", "Rscript", f"as root: apt-get install {package}" if package else "")
    remedy = f"a package of your distribution, or {download}" if download else ""
    yield _language("Julia", "julia", remedy)


def _language(language: str, program: str, remedy: str) -> Check:
    says = f"there is no {program}" if remedy else f"run by {program}"
    name = f"bodies in {language}"
    return Check(group="use", name=name, works=not remedy, says=says, remedy=remedy)


def tool_checks() -> Iterator[Check]:
    """What finds devices and loads boards."""
    yield _tool("OpenCL devices", "clinfo", "clinfo", "listed")
    yield _tool("boards with FPGAs", "openFPGALoader", "openfpgaloader", "found and loaded")


def _tool(name: str, program: str, package: str, done: str) -> Check:
    if engine.which(program):
        return Check(group="use", name=name, works=True, says=f"{done} by {program}")
    says, remedy = f"not {done}: there is no {program}", f"as root: apt-get install {package}"
    return Check(group="use", name=name, works=False, says=says, remedy=remedy)


def _left_alone() -> Iterator[Check]:
    """Leftovers that later starts of FlowOS do not remove."""
    for folder in engine.here().left_alone():
        yield Check(
            group="use",
            name="clean run folders",
            works=False,
            says=f"{folder} is left alone: its process is gone, but what that began may run on "
            "in another container, where one cannot look from here",
            remedy=f"if nothing of it runs any more: rm -r {folder}",
        )


def _runtime(runtime: Runtime, tried: Facts) -> Check:
    reasons = runtime.usable(tried)
    if reasons:
        says, remedy = reasons[0].text, reasons[0].remedy
        return Check(group="enter", name=runtime.name, works=False, says=says, remedy=remedy)
    tool = tried.tool(runtime.traits.program or runtime.name)
    works = {t.name for t in tried.tried if t.works}
    forms = [form for form in ("folder", "squashfs") if f"{runtime.name} {form}" in works]
    says = f"{tool.version if tool else ''} enters a {' or a '.join(forms)}"
    if "squashfs" not in forms:
        says += "; a squashfs is unpacked once"
    return Check(group="enter", name=runtime.name, works=True, says=says.strip())
