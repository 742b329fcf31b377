"""Errors of FlowOS.

FlowosError
 +- WiringError        a flow is invalid: wrong port type, wrong number of arguments
 +- ValueRefused       a value at `run`, or a task's result, does not fit its port
 +- TaskFailed         a task raised, or its command failed; has task, inputs, traceback
 |   +- WorkerLost     the process that ran the task is gone
 |   +- TimeLimitExceeded  the task ran over its limit_seconds and was ended
 |   +- RoundLimitExceeded a loop is not done after its max_rounds
 +- SliceFreed         the slice was freed before or during the request
 +- SliceRefused       a request for a slice cannot be met here: cores, environment, workers
 +- NoRetry            raised by a task: to run it again is of no use
 |   +- EngineMissing  what a task computes with is not there: no device, compiler or library
 +- Cancelled          the run was interrupted
 +- CloudError         machines of a cloud cannot be made or ended
 +- DeviceError        a device cannot be used: in use, gone, of another part, not configured
 |   +- UnknownDevice  no device has this name; an UnknownName too
 +- SettingsError      flowos.toml cannot be read: file, line and key
 +- LaunchFailed       a process could not be started
 +- EnvironmentRefused an image or runtime cannot be used here: missing, damaged, not allowed
 |   +- UnknownImage   no image or kernel has this name; an UnknownName too
 +- UsageError         a command was called wrongly: one clear line, exit code 2
 +- UnknownName        nothing is called as was said, or several are: exit code 2 of most commands
 +- StoreError         results could not be stored or read
 |   +- UnknownRecord  no run, process, slice or task has this name; an UnknownName too
 +- FeedError          training data cannot be read or stored: no folder, no samples, no such cache
 |   +- SampleError    one sample is missing, unreadable, truncated or cannot be decoded
 +- SolveError         a linear system cannot be solved: matrix, b or an option is unsuitable
 +- MeasureError       the output of a measuring program cannot be read
"""


class FlowosError(Exception):
    """Base class of all our errors. The text says what failed, where, and how to fix it.

    >>> try:
    ...     fo.flow_output()
    ... except fo.FlowosError as error:
    ...     print(error)
    flow_output: give at least one port
    """


class WiringError(FlowosError, TypeError):
    """A flow is invalid.

    >>> try:
    ...     fo.flow_output()
    ... except fo.WiringError as error:
    ...     print(error)
    flow_output: give at least one port
    """


class ValueRefused(FlowosError, ValueError):  # noqa: N818 - reads as what happened
    """A value does not fit its port.

    >>> with fo.slice(fo.flow_input("n", int)) as s:
    ...     try:
    ...         s.run("three")
    ...     except fo.ValueRefused as error:
    ...         print(error)
    run: input 'n': expected int64, given 'three' (str)
    """


class TaskFailed(FlowosError):  # noqa: N818
    """A task raised or its command failed.

    >>> with fo.slice(fo.command(["false"])()) as s:
    ...     try:
    ...         s.run()
    ...     except fo.TaskFailed as error:
    ...         print(error)
    task 'false': the command exited with 1; command: false; given nothing
    """


class WorkerLost(TaskFailed):
    """The process that ran the task is gone.

    node: with which it was lost, if that is known. requeue: whether the run may begin anew.
    attempts: that it had made of the task that needed most.

    >>> @fo.task
    ... def end(code: int) -> int:
    ...     import os
    ...     os._exit(code)
    >>> with fo.slice(end(3), workers="process") as s:
    ...     try:
    ...         s.run()
    ...     except fo.WorkerLost as error:
    ...         print(error)
    task 'end': its worker process is gone: it exited with code 3
    """

    node = ""
    requeue = True
    attempts = 1


class TimeLimitExceeded(TaskFailed):
    """The task ran over its time limit and was ended.

    >>> with fo.slice(fo.command(["sleep", "60"], limit_seconds=0.05)()) as s:
    ...     try:
    ...         s.run()
    ...     except fo.TimeLimitExceeded as error:
    ...         print(error)
    task 'sleep': the command ran over its time limit (signal 15); command: sleep 60; given nothing
    """


class RoundLimitExceeded(TaskFailed):
    """A loop is not done after its greatest number of rounds.

    >>> @fo.task
    ... def add(n: int) -> int:
    ...     return n + 1
    >>> @fo.task
    ... def enough(n: int) -> bool:
    ...     return n > 9
    >>> with fo.slice(fo.loop(add, 0, until=enough, max_rounds=3)) as s:
    ...     try:
    ...         s.run()
    ...     except fo.RoundLimitExceeded as error:
    ...         print(error)
    task 'loop' is not done after 3 rounds; the last one gave add = 3 (int)
    """


class SliceFreed(FlowosError, RuntimeError):  # noqa: N818
    """The slice was freed.

    >>> with fo.slice(fo.flow_input("n", int)) as s:
    ...     s.run(1)
    [1]
    >>> try:
    ...     s.run(1)
    ... except fo.SliceFreed as error:
    ...     print(error)
    the slice was freed: make another with fo.slice(...)
    """


class SliceRefused(FlowosError, ValueError):  # noqa: N818
    """A request for a slice cannot be met here.

    >>> try:
    ...     fo.slice(fo.flow_input("n", int), cores=0)
    ... except fo.SliceRefused as error:
    ...     print(error)
    slice: cores=0 (int); expected a positive int
    """


class NoRetry(FlowosError):  # noqa: N818
    """Raised by a task that has retries: it fails at once, without another attempt.

    >>> @fo.task(retries=5)
    ... def read(part: int) -> int:
    ...     raise fo.NoRetry(f"there is no part {part}")
    >>> with fo.slice(read(7)) as s:
    ...     try:
    ...         s.run()
    ...     except fo.TaskFailed as error:
    ...         print(error)
    task 'read' raised NoRetry: there is no part 7 ...
    """


class EngineMissing(NoRetry):
    """What a task computes with is not there: no device, compiler or library."""


class Cancelled(FlowosError):  # noqa: N818
    """The run was interrupted.

    >>> with fo.slice(fo.command(["sleep", "60"])()) as s:
    ...     run = s.submit()
    ...     run.cancel(), issubclass(fo.Cancelled, fo.FlowosError)
    (True, True)
    """


class CloudError(FlowosError):
    """Machines of a cloud cannot be made or ended."""


class DeviceError(FlowosError):
    """A device cannot be used. faulty: by its own fault, so that it is taken out of use."""

    faulty = False


class SettingsError(FlowosError):
    """The settings cannot be read.

    >>> from pathlib import Path
    >>> size = Path("flowos.toml").write_text("pools.mine = {kind = 'slrum'}")
    >>> try:
    ...     fo.slice(pool="mine")
    ... except fo.SettingsError as error:
    ...     print(error)
    flowos.toml:1: pools.mine.kind: 'slrum': one of local, fake, slurm, sge; did you mean 'slurm'?
    """


class LaunchFailed(FlowosError):  # noqa: N818
    """A process could not be started."""


class EnvironmentRefused(FlowosError):  # noqa: N818
    """An image or runtime cannot be used here.

    >>> try:
    ...     fo.environment("no-such-image.sqfs")
    ... except fo.EnvironmentRefused as error:
    ...     print(error)
    no such image: there is nothing at .../no-such-image.sqfs
    """


class UsageError(FlowosError):
    """A command was called wrongly."""


class UnknownName(FlowosError):  # noqa: N818
    """A run, image, slice or the like was named that there is not, or several fit its beginning."""


class StoreError(FlowosError):
    """Results could not be stored or read."""


class NoStoreError(StoreError):
    """A store that was named is not there."""


class UnknownRecord(StoreError, UnknownName):  # noqa: N818
    """No run, process, slice or task that is kept or runs has this name, or several have."""


class UnknownImage(EnvironmentRefused, UnknownName):
    """No image or kernel of the library has this name, or several have."""


class UnknownDevice(DeviceError, UnknownName):  # noqa: N818
    """No device of this machine has this name."""


class MeasureError(FlowosError):
    """The output of a measuring program cannot be read."""


class FeedError(FlowosError):
    """Training data cannot be read or stored.

    >>> try:
    ...     fo.Feed("no-such-folder", batch_size=2)
    ... except fo.FeedError as error:
    ...     print(error)
    Feed: there is no .../no-such-folder: is it mounted here, and spelled so?
    """


class SampleError(FeedError):
    """One sample cannot be read.

    >>> try:
    ...     fo.decode.jpeg(32).decode(b"no picture")
    ... except fo.SampleError as error:
    ...     print(error)
    Not a JPEG file: starts with 0x6e 0x6f
    """


class SolveError(FlowosError, ValueError):
    """A linear system cannot be solved with these inputs.

    >>> import scipy.sparse
    >>> try:
    ...     fo.solve(scipy.sparse.eye_array(2), [1.0, 2.0, 3.0])
    ... except fo.SolveError as error:
    ...     print(error)
    b has shape (3,): expected (2,), one right-hand side at a time
    """
