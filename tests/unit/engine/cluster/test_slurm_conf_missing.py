"""What Slurm's commands complain of, with what this shell lacks."""

import pytest

from flowos.engine.slurm._commands import _complaint

NO_SETTINGS = "scontrol: fatal: Could not establish a configuration source\n"


@pytest.mark.parametrize("value", [None, ""])
def test_without_slurm_conf_commands_that_find_no_settings_say_so(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_CONF", raising=False)
    if value is not None:
        monkeypatch.setenv("SLURM_CONF", value)
    assert _complaint(NO_SETTINGS).kind == "refused"
    assert _complaint(NO_SETTINGS).text == (
        "Could not establish a configuration source; SLURM_CONF is not set in this shell: "
        "export SLURM_CONF=/PATH/slurm.conf"
    )
    assert _complaint("error: Invalid partition name").text == "Invalid partition name"


def test_with_slurm_conf_the_complaint_is_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    assert _complaint(NO_SETTINGS).text == "Could not establish a configuration source"
