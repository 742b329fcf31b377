"""FPGAs of the settings, for slices on this machine."""

from flowos.model import Flow, Task


def know_fpgas(flow: Flow | None = None) -> None:
    """Slices on this machine may need them. Raises SettingsError for a mistake.

    flow: the settings, which take 20 ms, are read only if one of its tasks needs devices, or is in
    Verilog.
    """
    from flowos.engine import here
    from flowos.plan import tasks_within

    tasks = {} if flow is None else {id(task): task for task in tasks_within(flow)}
    if flow is None or any(map(_may_need_fpgas, tasks.values())):
        from flowos.operations.settings_file import load_settings

        here().know_fpgas(load_settings().fpgas)


def _may_need_fpgas(task: Task) -> bool:
    bodies = getattr(task.body, "bodies", (task.body,))
    in_verilog = any(getattr(body, "engine", "") == "hdl" for body in bodies)
    return in_verilog or any(each.devices for each in task.needs.choices)
