"""What can go wrong, as people meet it.

FlowosError
 +- WiringError        a flow is written wrongly: wrong port type, wrong number of arguments
 +- ValueRefused       a value at `run`, or a task's result, is not what its port promises
 +- TaskFailed         a task raised, or its command failed; carries task, inputs, traceback
 |   +- WorkerLost     the process that ran the task is gone
 +- SliceFreed         the slice was freed before or while this was asked of it
 +- SliceRefused       what was asked of a slice is not to be had here: cores, environment, workers
 +- Cancelled          the run was interrupted
 +- SettingsError      flowos.toml cannot be read: file, line and key
 +- LaunchFailed       a process could not be started
 +- EnvironmentRefused an image or runtime cannot be used here: missing, damaged, not allowed
 +- UsageError         a command was called wrongly: one clear line, exit code 2
 +- StoreError         results could not be kept or read
 +- FeedError          training data cannot be had or kept: no folder, no samples, no such cache
 |   +- SampleError    one sample is missing, unreadable, truncated or cannot be decoded
 +- SolveError         a system cannot be solved so: the matrix, b or a choice is not fit
 +- MeasureError       a measuring program gave an answer that cannot be read
"""


class FlowosError(Exception):
    """The root: catch this to catch all of ours. The text says what, where, and how to mend it."""


class WiringError(FlowosError, TypeError):
    """A flow is written wrongly."""


class ValueRefused(FlowosError, ValueError):  # noqa: N818 - reads as what happened
    """A value is not what its port promises."""


class TaskFailed(FlowosError):  # noqa: N818
    """A task raised or its command failed."""


class WorkerLost(TaskFailed):
    """The process that ran the task is gone."""


class SliceFreed(FlowosError, RuntimeError):  # noqa: N818
    """The slice was freed."""


class SliceRefused(FlowosError, ValueError):  # noqa: N818
    """What was asked of a slice is not to be had here."""


class Cancelled(FlowosError):  # noqa: N818
    """The run was interrupted."""


class SettingsError(FlowosError):
    """The settings cannot be read."""


class LaunchFailed(FlowosError):  # noqa: N818
    """A process could not be started."""


class EnvironmentRefused(FlowosError):  # noqa: N818
    """An image or runtime cannot be used here."""


class UsageError(FlowosError):
    """A command was called wrongly."""


class StoreError(FlowosError):
    """Results could not be kept or read."""


class MeasureError(FlowosError):
    """A measuring program gave an answer that cannot be read."""


class FeedError(FlowosError):
    """Training data cannot be had or kept."""


class SampleError(FeedError):
    """One sample cannot be had."""


class SolveError(FlowosError, ValueError):
    """A system of equations cannot be solved so."""
