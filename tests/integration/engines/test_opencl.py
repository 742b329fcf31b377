"""Bodies in OpenCL C by a real platform: results, and one clear line for what is wrong."""

import gc
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.drivers import DeviceFacts, StepAnswer, device_driver_named
from flowos.engine import opencl_devices

VECTOR = fo.array(fo.float32, ("n",))
TRIAD = """
__kernel void triad(__global const float* b, __global const float* c, double s, long n,
                    __global float* a) {
  size_t i = get_global_id(0);
  a[i] = b[i] + (float)s * c[i];
}
"""
PORTS: Any = {"inputs": {"b": VECTOR, "c": VECTOR, "s": fo.float64}, "outputs": {"a": VECTOR}}
B, C = np.arange(4, dtype="f4"), np.ones(4, "f4")


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    return folder


def run(task: Any, *values: object, **options: Any) -> list[Any]:
    inputs = [fo.flow_input(port.name, port.type) for port in task.inputs]
    options = {"workers": "inline", "cores": 1, **options}
    with fo.slice(fo.flow_output(task(*inputs)), **options) as opened:
        values_found: list[Any] = opened.run(*values)
    return values_found


def failure(task: Any, *values: object, **options: Any) -> str:
    with pytest.raises(fo.FlowosError) as caught:
        run(task, *values, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("workers", ["inline", "thread", "process"])
def test_a_kernel_computes_wherever_tasks_run(workers: str) -> None:
    (a,) = run(fo.opencl(TRIAD, "triad", **PORTS), B, C, 3.0, workers=workers)
    assert a.tolist() == (B + 3 * C).tolist()


def test_pytorch_takes_what_a_kernel_wrote_without_a_copy_and_keeps_it() -> None:
    """By DLPack, as NumPy has it. Where its slice was freed, and other memory asked for since."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    (a,) = run(fo.opencl(TRIAD, "triad", **PORTS), B, C, 3.0)
    taken, at = torch.from_dlpack(a), a.ctypes.data
    assert (taken.device.type, taken.data_ptr()) == ("cpu", at)
    del a
    gc.collect()
    others = [np.empty(4, "f4") for _ in range(100)]
    assert at not in {each.ctypes.data for each in others}
    assert taken.numpy().tobytes() == (B + 3 * C).tobytes()


ALL = """
__kernel void mixed(char c, uchar uc, short s, ushort us, int i, uint ui, long l, ulong ul, float f,
                  double d, __global const int *x, long n, __global double *sum, __global long *y) {
  if (get_global_id(0) == 0) *sum = (double)c + uc + s + us + i + ui + l + ul + f + d;
  y[get_global_id(0) * 2 + get_global_id(1)] = x[get_global_id(0)] * 10 + get_global_id(1);
}
"""


def test_arguments_of_all_types_arrive_and_work_has_axes() -> None:
    numbers: dict[str, Any] = {}
    for bits in (8, 16, 32, 64):
        numbers |= {f"i{bits}": getattr(fo, f"int{bits}"), f"u{bits}": getattr(fo, f"uint{bits}")}
    task = fo.opencl(
        ALL,
        "mixed",
        size=("n", 2),
        group=(1, 2),
        inputs={**numbers, "f": fo.float32, "d": fo.float64, "x": fo.array(fo.int32, ("n",))},
        outputs={"sum": fo.float64, "y": fo.array(fo.int64, ("n", 2))},
    )
    values = [-1, 200, -300, 60000, -(2**20), 2**31, -(2**40), 2**41, 0.5, 0.25]
    total, y = run(task, *values, np.array([1, 2, 3], "i4"))
    assert total == sum(values)
    assert y.tolist() == [[10, 11], [20, 21], [30, 31]]


SEEN = """
__kernel void seen(__global const float* b, long n, __global float* a, __global long* at) {
  a[get_global_id(0)] = b[get_global_id(0)];
  if (get_global_id(0) == 0) { at[0] = (long)b; at[1] = (long)a; }
}
"""


def test_on_a_cpu_a_kernel_works_on_the_arrays_themselves() -> None:
    outputs = {"a": VECTOR, "at": fo.array(fo.int64, (2,))}
    task: Any = fo.opencl(SEEN, "seen", inputs={"b": VECTOR}, outputs=outputs)
    b = np.arange(1001, dtype="f4")[1:]  # however it is aligned
    a, at = task.body.fun(b)
    assert at.tolist() == [b.ctypes.data, a.ctypes.data]
    assert a.tolist() == b.tolist()


def test_arrays_with_strides_are_copied_and_inputs_may_be_read_only() -> None:
    wide = np.arange(8, dtype="f4")
    wide.flags.writeable = False
    task = fo.opencl(TRIAD, "triad", **PORTS)
    assert run(task, wide[::2], wide[::-2], 1.0)[0].tolist() == [7.0] * 4
    assert run(task, wide, wide, 1.0)[0].tolist() == (2 * wide).tolist()


def test_nothing_is_run_of_no_work() -> None:
    none = np.zeros(0, "f4")
    task = fo.opencl(TRIAD, "triad", **PORTS)
    assert run(task, none, none, 1.0)[0].shape == (0,)
    ports: Any = {"inputs": {"b": fo.array(fo.float32, ("m",)), "n": fo.int64}}
    ports["outputs"] = {"a": VECTOR, "s": fo.float32}
    text = """__kernel void f(__global const float* b, long n, long m, __global float* a,
    __global float* s) { a[get_global_id(0)] = m; *s = b == 0; }"""
    a, s = run(fo.opencl(text, "f", **ports), none, 3)
    assert (a.tolist(), s) == ([0.0] * 3, 1.0)


def test_sizes_and_groups_follow_extents_and_integers() -> None:
    text = """__kernel void f(long n, __global long* groups, __global long* of) {
      *groups = get_num_groups(0); *of = get_local_size(0); }"""
    ports: Any = {"inputs": {"n": fo.int64}, "outputs": {"groups": fo.int64, "of": fo.int64}}
    assert run(fo.opencl(text, "f", size="n/4*4", group=4, **ports), 10) == [3, 4]
    assert run(fo.opencl(text, "f", size=6, group=2, **ports), 10) == [3, 2]
    said = failure(fo.opencl(text, "f", group=4, **ports), 10)
    assert "BodyError: f: groups of 4 do not divide n = 10; 'n/4*4' is a size" in said
    assert "task 'f', its work has a size below 0: -1" in failure(fo.opencl(text, "f", **ports), -1)
    said = failure(fo.opencl(text, "f", size="n*99999999999999999999", **ports), 10)
    assert "task 'f', its work has a size above 2^63 - 1: 99999999999999999999" in said
    assert "CompileFailed: group=(1000000,): " in failure(
        fo.opencl(text, "f", group=1_000_000, **ports), 1_000_000
    )


TWICE = """__kernel void twice(__global const float* b, long n, __global float* a) {
  a[get_global_id(0)] = 2 * b[get_global_id(0)];
}"""


@fo.task
def halved(a: VECTOR) -> VECTOR:  # type: ignore[valid-type]
    assert type(a) is np.ndarray
    return a / 2


def copies_of(flow: Any, values: Any, **options: Any) -> tuple[list[Any], int, int]:
    """What a run gives, and how many arrays were copied to a device with memory of its own, and
    back."""
    from flowos.engine.bodies._opencl_engine import opencl_engine

    engine = opencl_engine()
    assert engine.memory == "own"
    with fo.slice(flow, **options) as opened:
        before = engine.copies_in, engine.copies_out
        found = [a.tolist() for a in opened.run(*values)]
    return found, engine.copies_in - before[0], engine.copies_out - before[1]


@pytest.mark.parametrize("workers", ["inline", "thread"])
def test_arrays_stay_on_a_device_between_its_tasks(
    workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWOS_OPENCL_MEMORY", "own")
    twice = fo.opencl(TWICE, "twice", inputs={"b": VECTOR}, outputs={"a": VECTOR})
    triad = fo.opencl(TRIAD, "triad", **PORTS)
    b = fo.flow_input("b", VECTOR)
    chain = fo.flow_output(twice(twice(twice(b))))
    assert copies_of(chain, [B], workers=workers) == ([(8 * B).tolist()], 1, 1)
    made = twice(b)
    diamond = fo.flow_output(triad(twice(made), twice(made), 1.0))
    assert copies_of(diamond, [B], workers=workers) == ([(8 * B).tolist()], 1, 1)
    mixed = fo.flow_output(halved(made), twice(made))
    found, into, out = copies_of(mixed, [B], workers=workers)
    assert found == [B.tolist(), (4 * B).tolist()]
    assert (into, out) == ((1, 2) if workers == "inline" else (2, 2))


def test_between_worker_processes_arrays_cross_as_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWOS_OPENCL_MEMORY", "own")
    twice = fo.opencl(TWICE, "twice", inputs={"b": VECTOR}, outputs={"a": VECTOR})
    b = fo.flow_input("b", VECTOR)
    made = twice(twice(b))
    flow = fo.flow_output(halved(made), twice(made))
    with fo.slice(flow, workers="process", cores=1) as opened:
        found: Any = opened.run(B)
    assert [a.tolist() for a in found] == [(2 * B).tolist(), (8 * B).tolist()]


def test_memory_that_a_platform_maps_is_copied_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWOS_OPENCL_MEMORY", "mapped")
    triad = fo.opencl(TRIAD, "triad", **PORTS)
    assert run(triad, B, C, 3.0)[0].tolist() == (B + 3 * C).tolist()
    assert run(triad, B[:0], C[:0], 3.0)[0].shape == (0,)


def test_extents_have_to_agree() -> None:
    task = fo.opencl(TRIAD, "triad", **PORTS)
    said = "task 'triad', input 'c': extent 'n' is 5, and 4 in input 'b'"
    assert failure(task, B, np.ones(5, "f4"), 1.0) == said


def test_a_source_that_does_not_compile_is_shown_by_its_line(tmp_path: Path) -> None:
    file = tmp_path / "triad.cl"
    file.write_text(TRIAD.replace("b[i]", "d[i]"))
    said = failure(fo.opencl(file, "triad", **PORTS), B, C, 1.0)
    assert said.startswith(f"task 'triad' raised CompileFailed: {file}:5:")
    assert "undeclared identifier 'd'" in said


def test_what_a_kernel_does_not_take_is_named() -> None:
    assert "source.cl has no kernel triade; it has triad" in failure(
        fo.opencl(TRIAD, "triade", **PORTS), B, C, 1.0
    )
    fewer = TRIAD.replace("double s, ", "").replace("(float)s", "3")
    assert (
        "source.cl: kernel triad takes 4 arguments, its ports make 5: float * b, float * c, "
        "double s, long n, float * a"
    ) in failure(fo.opencl(fewer, "triad", **PORTS), B, C, 1.0)
    other = TRIAD.replace("double s", "float s")
    assert "argument 3 of kernel triad is float, s is passed as double" in failure(
        fo.opencl(other, "triad", **PORTS), B, C, 1.0
    )
    other = TRIAD.replace("const float* c", "const double* c")
    assert "argument 2 of kernel triad is double*, c is passed as float *" in failure(
        fo.opencl(other, "triad", **PORTS), B, C, 1.0
    )


def test_headers_are_looked_for_next_to_the_source_and_flags_are_passed_on(tmp_path: Path) -> None:
    (tmp_path / "scale.h").write_text("#define SCALE 3\n")
    file = tmp_path / "scaled.cl"
    file.write_text(
        '#include "scale.h"\n'
        "__kernel void scaled(long x, __global long* y) { *y = SCALE * x + MORE; }"
    )
    ports: Any = {"inputs": {"x": fo.int64}, "outputs": {"y": fo.int64}}
    task = fo.opencl(file, "scaled", size=1, flags=["-DMORE=1"], **ports)
    assert run(task, 4) == [13]


@pytest.mark.parametrize("flags", [["-I{}"], ["-I", "{}"], ["-I {}"]])
def test_headers_in_other_folders_are_seen_by_kept_results(
    tmp_path: Path, flags: list[str]
) -> None:
    (tmp_path / "inc").mkdir()
    file = tmp_path / "scaled.cl"
    file.write_text(
        "#include <scale.h>\n__kernel void scaled(long x, __global long* y) { *y = SCALE * x; }"
    )
    ports: Any = {"inputs": {"x": fo.int64}, "outputs": {"y": fo.int64}}
    words = [flag.format(tmp_path / "inc") for flag in flags]
    for factor in (2, 3):
        (tmp_path / "inc" / "scale.h").write_text(f"#define SCALE {factor}\n")
        task = fo.opencl(file, "scaled", size=1, flags=words, cache=True, **ports)
        assert run(task, 4) == [4 * factor]


def test_threads_call_one_kernel_at_once() -> None:
    task: Any = fo.opencl(TRIAD, "triad", **PORTS)
    found: list[bool] = []

    def calls(s: float) -> None:
        b = np.full(1000, s, "f4")
        found.append(all((task.body.fun(b, b, s) == s + s * s).all() for _ in range(50)))

    threads = [threading.Thread(target=calls, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def said_by(program: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


PROGRAM = f"""
import numpy as np, flowos as fo
v = fo.array(fo.float32, ("n",))
inputs = {{"b": v, "c": v, "s": fo.float64}}
triad = fo.opencl({TRIAD!r}, "triad", inputs=inputs, outputs={{"a": v}})
b = fo.flow_input("b", v)
again = triad(b, b, 1.0)
with fo.slice(fo.flow_output(triad(again, again, 1.0)), workers="inline") as s:
    try:
        print(*s.run(np.ones(2, "f4")))
    except fo.FlowosError as error:
        print(error)
"""


def test_a_device_is_named_as_flowos_lists_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said = subprocess.run(["clinfo", "--raw"], capture_output=True, text=True, check=True).stdout
    listed = device_driver_named("opencl").find(DeviceFacts(answers=(StepAnswer(0, said),)))
    assert [device.name for device in listed] == list(opencl_devices())
    task = fo.opencl(TRIAD, "triad", **PORTS)
    monkeypatch.setenv("FLOWOS_OPENCL_DEVICE", listed[-1].name)
    assert run(task, B, C, 3.0)[0].tolist() == (B + 3 * C).tolist()
    monkeypatch.setenv("FLOWOS_OPENCL_DEVICE", "gpu7")
    said = failure(fo.opencl(TRIAD, "triad", **PORTS), B, C, 3.0)
    assert "EngineMissing: FLOWOS_OPENCL_DEVICE names gpu7, which is none of this machine" in said


def test_platforms_of_one_name_are_told_apart_by_the_names_that_flowos_lists(
    tmp_path: Path,
) -> None:
    """pocl, installed twice: loaders list it as two platforms."""
    for name in ("a.icd", "b.icd"):
        (tmp_path / name).write_bytes(Path("/etc/OpenCL/vendors/pocl.icd").read_bytes())
    vendors = {"OCL_ICD_VENDORS": str(tmp_path)}
    words = [sys.executable, "-m", "flowos", "device", "list", "--json"]
    done = subprocess.run(words, env={**os.environ, **vendors}, capture_output=True, check=True)
    devices = [each["device"] for each in json.loads(done.stdout)]
    listed = [each["name"] for each in devices if each["kind"] == "opencl"]
    assert listed == ["opencl-pocl-0", "opencl-pocl-1"]
    asks = "from flowos.engine import opencl_devices\nprint(*opencl_devices())\n"
    for name in listed:
        said = said_by(asks + PROGRAM, FLOWOS_OPENCL_DEVICE=name, **vendors)
        assert said.splitlines() == [" ".join(listed), "[4. 4.]"]


def test_what_is_missing_is_said_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = said_by(PROGRAM, OCL_ICD_VENDORS=str(tmp_path))
    assert "there is no OpenCL device: install a platform, such as Debian's pocl-opencl-icd" in said
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    monkeypatch.setenv("FLOWOS_OPENCL_DEVICE", "another")  # else the one that is open serves
    said = failure(fo.opencl(TRIAD, "triad", **PORTS), B, C, 3.0)
    assert "EngineMissing: pyopencl cannot be loaded" in said
    assert "pip install 'flowos-hpc[opencl]'" in said


def test_what_pocl_keeps_is_in_our_cache_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    variables = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(home), "POCL_CACHE_DIR": ""}
    program = "import os; del os.environ['POCL_CACHE_DIR']\n" + PROGRAM
    assert said_by(program, **variables) == "[4. 4.]\n"
    assert list((tmp_path / "cache/flowos/pocl").rglob("*.so"))
    assert not home.exists()


def test_kept_results_depend_on_the_code() -> None:
    def total(text: str) -> Any:
        task = fo.opencl(text, "triad", cache=True, **PORTS)
        return float(run(task, B, C, 1.0)[0].sum())

    assert total(TRIAD) == total(TRIAD) == 10.0
    assert total(TRIAD.replace("* c[i]", "* c[i] * 2")) == 14.0


@pytest.mark.parametrize(
    ("source", "kernel", "more", "said"),
    [
        ("no/such.cl", "f", {}, "cannot read"),
        (TRIAD, "a b", {}, "kernel='a b' (str); expected the name of a function"),
        (TRIAD, "f", {"flags": "-DX"}, "flags='-DX' (str); expected a list of words"),
        (TRIAD, "f", {"size": "m"}, "size: no extent and no integer input is 'm'; there is n"),
        (TRIAD, "f", {"size": 10, "group": 4}, "groups of 4 do not divide 10"),
        (TRIAD, "f", {"group": (4, 4)}, "group=(4, 4) (tuple); expected an integer above 0"),
        (TRIAD, "f", {"inputs": {"x": fo.bool_}}, "input 'x': it cannot have bool, but float32"),
    ],
)
def test_what_is_no_body_is_refused_at_once(
    source: Any, kernel: str, more: dict[str, Any], said: str
) -> None:
    ports = {"inputs": {"n": fo.int64}, "outputs": {"y": VECTOR}}
    with pytest.raises(fo.WiringError, match=r"^opencl '") as caught:
        fo.opencl(source, kernel, **{**ports, **more})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_body_says_its_engine() -> None:
    task: Any = fo.opencl(TRIAD, "triad", **PORTS)
    assert task.body.engine == "opencl"
