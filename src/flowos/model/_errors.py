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
 +- Cancelled          the run was interrupted
 +- CloudError         machines of a cloud cannot be made or ended
 +- DeviceError        a device cannot be used: in use, gone, of another part, not configured
 +- SettingsError      flowos.toml cannot be read: file, line and key
 +- LaunchFailed       a process could not be started
 +- EnvironmentRefused an image or runtime cannot be used here: missing, damaged, not allowed
 +- UsageError         a command was called wrongly: one clear line, exit code 2
 +- StoreError         results could not be stored or read
 +- FeedError          training data cannot be read or stored: no folder, no samples, no such cache
 |   +- SampleError    one sample is missing, unreadable, truncated or cannot be decoded
 +- SolveError         a linear system cannot be solved: matrix, b or an option is unsuitable
 +- MeasureError       the output of a measuring program cannot be read
"""


class FlowosError(Exception):
    """Base class of all our errors. The text says what failed, where, and how to fix it."""


class WiringError(FlowosError, TypeError):
    """A flow is invalid."""


class ValueRefused(FlowosError, ValueError):  # noqa: N818 - reads as what happened
    """A value does not fit its port."""


class TaskFailed(FlowosError):  # noqa: N818
    """A task raised or its command failed."""


class WorkerLost(TaskFailed):
    """The process that ran the task is gone.

    node: with which it was lost, if that is known. requeue: whether the run may begin anew.
    attempts: that it had made of the task that needed most.
    """

    node = ""
    requeue = True
    attempts = 1


class TimeLimitExceeded(TaskFailed):
    """The task ran over its time limit and was ended."""


class RoundLimitExceeded(TaskFailed):
    """A loop is not done after its greatest number of rounds."""


class SliceFreed(FlowosError, RuntimeError):  # noqa: N818
    """The slice was freed."""


class SliceRefused(FlowosError, ValueError):  # noqa: N818
    """A request for a slice cannot be met here."""


class NoRetry(FlowosError):  # noqa: N818
    """Raised by a task that has retries: it fails at once, without another attempt."""


class Cancelled(FlowosError):  # noqa: N818
    """The run was interrupted."""


class CloudError(FlowosError):
    """Machines of a cloud cannot be made or ended."""


class DeviceError(FlowosError):
    """A device cannot be used. faulty: by its own fault, so that it is taken out of use."""

    faulty = False


class SettingsError(FlowosError):
    """The settings cannot be read."""


class LaunchFailed(FlowosError):  # noqa: N818
    """A process could not be started."""


class EnvironmentRefused(FlowosError):  # noqa: N818
    """An image or runtime cannot be used here."""


class UsageError(FlowosError):
    """A command was called wrongly."""


class StoreError(FlowosError):
    """Results could not be stored or read."""


class MeasureError(FlowosError):
    """The output of a measuring program cannot be read."""


class FeedError(FlowosError):
    """Training data cannot be read or stored."""


class SampleError(FeedError):
    """One sample cannot be read."""


class SolveError(FlowosError, ValueError):
    """A linear system cannot be solved with these inputs."""
