"""The face as type checkers see it: a port type in an annotation stands for its Python type."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from flowos.operations._attach import attach as attach
from flowos.operations._slice import slice_ as _slice
from flowos.operations.environment import environment as environment
from flowos.operations.measurement import measure as measure
from flowos.operations.feed import serve_metrics as serve_metrics
from flowos.operations.publish import publish as publish
from flowos import kernels as kernels
from flowos.engine import as_completed as as_completed
from flowos.engine import cuda as cuda
from flowos.engine import cxx as cxx
from flowos.engine import julia as julia
from flowos.engine import opencl as opencl
from flowos.engine import bitstream as bitstream
from flowos.engine import hdl as hdl
from flowos.engine import r as r
from flowos.feeder import Feed as Feed
from flowos.feeder import Peers as Peers
from flowos.feeder import decode as decode
from flowos.model import Cancelled as Cancelled
from flowos.model import Environment as Environment
from flowos.model import EnvironmentRefused as EnvironmentRefused
from flowos.model import FeedError as FeedError
from flowos.model import Flow as Flow
from flowos.model import FlowosError as FlowosError
from flowos.model import In as In
from flowos.model import Needs as Needs
from flowos.model import NoRetry as NoRetry
from flowos.model import Out as Out
from flowos.model import Outcome as Outcome
from flowos.model import PortType as _PortType
from flowos.model import RoundLimitExceeded as RoundLimitExceeded
from flowos.model import RunResult as RunResult
from flowos.model import SampleError as SampleError
from flowos.model import SettingsError as SettingsError
from flowos.model import SliceFreed as SliceFreed
from flowos.model import SliceRefused as SliceRefused
from flowos.model import SolveError as SolveError
from flowos.model import Task as Task
from flowos.model import TaskFailed as TaskFailed
from flowos.model import TimeLimitExceeded as TimeLimitExceeded
from flowos.model import ValueRefused as ValueRefused
from flowos.model import WiringError as WiringError
from flowos.model import WorkerLost as WorkerLost
from flowos.model import command as command
from flowos.model import cond as cond
from flowos.model import either as either
from flowos.model import flow_input as flow_input
from flowos.model import flow_output as flow_output
from flowos.model import gang as gang
from flowos.model import loop as loop
from flowos.model import task as task
from flowos.solver import Solver as Solver
from flowos.solver import solve as solve

int8: TypeAlias = int
int16: TypeAlias = int
int32: TypeAlias = int
int64: TypeAlias = int
uint8: TypeAlias = int
uint16: TypeAlias = int
uint32: TypeAlias = int
uint64: TypeAlias = int
float16: TypeAlias = float
float32: TypeAlias = float
float64: TypeAlias = float
complex64: TypeAlias = complex
complex128: TypeAlias = complex
bool_: TypeAlias = bool
str_: TypeAlias = str
bytes_: TypeAlias = bytes
File: TypeAlias = Path
any_: TypeAlias = Any

def array(
    dtype: object = None, shape: int | str | tuple[int | str | None, ...] | None = None
) -> _PortType: ...

slice = _slice

__all__: Sequence[str]
__version__: str
