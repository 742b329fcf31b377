"""FlowOS: flows of typed tasks on slices of resources, training data fed to them, and measurements
that can be trusted.

The names below are loaded on first use: importing flowos loads none of its packages.
"""

from importlib import import_module

_MODEL = (
    "Cancelled",
    "Environment",
    "EnvironmentRefused",
    "FeedError",
    "File",
    "Flow",
    "FlowosError",
    "In",
    "Needs",
    "NoRetry",
    "Out",
    "Outcome",
    "RoundLimitExceeded",
    "RunResult",
    "SampleError",
    "SettingsError",
    "SliceFreed",
    "SliceRefused",
    "SolveError",
    "Task",
    "TaskFailed",
    "TimeLimitExceeded",
    "ValueRefused",
    "WiringError",
    "WorkerLost",
    "any_",
    "array",
    "bool_",
    "bytes_",
    "command",
    "complex128",
    "complex64",
    "cond",
    "either",
    "float16",
    "float32",
    "float64",
    "flow_input",
    "flow_output",
    "gang",
    "int16",
    "int32",
    "int64",
    "int8",
    "loop",
    "str_",
    "task",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
)

_FACE: dict[str, tuple[str, str]] = {
    **{name: ("flowos.model", name) for name in _MODEL},
    "Feed": ("flowos.feeder", "Feed"),
    "Peers": ("flowos.feeder", "Peers"),
    "Solver": ("flowos.solver", "Solver"),
    "as_completed": ("flowos.engine", "as_completed"),
    "attach": ("flowos.operations._attach", "attach"),
    "bitstream": ("flowos.engine", "bitstream"),
    "cuda": ("flowos.engine", "cuda"),
    "cxx": ("flowos.engine", "cxx"),
    "decode": ("flowos.feeder", "decode"),
    "environment": ("flowos.operations.environment", "environment"),
    "hdl": ("flowos.engine", "hdl"),
    "julia": ("flowos.engine", "julia"),
    "kernels": ("flowos.kernels", ""),
    "measure": ("flowos.operations.measurement", "measure"),
    "opencl": ("flowos.engine", "opencl"),
    "r": ("flowos.engine", "r"),
    "publish": ("flowos.operations.publish", "publish"),
    "serve_metrics": ("flowos.operations.feed", "serve_metrics"),
    "slice": ("flowos.operations._slice", "slice_"),
    "solve": ("flowos.solver", "solve"),
}
"""Public name -> module and name in it; "": the module itself."""

__all__ = sorted(_FACE)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("flowos-hpc")
    place = _FACE.get(name)
    if place is None:
        raise AttributeError(f"module 'flowos' has no attribute {name!r}")
    module = import_module(place[0])
    value = getattr(module, place[1]) if place[1] else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *_FACE, "__version__"})
