"""What is said of a runtime none of whose variants can enter an image."""

import pytest

from flowos.drivers.runtimes.qemu import Qemu
from flowos.engine.environments import _tries
from flowos.engine.launch._session import LaunchSession


@pytest.mark.parametrize(("name", "said"), [("qemu", "bad kernel"), ("podman", "no KVM")])
def test_of_one_that_boots_it_is_what_needs_nothing_of_the_machine(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/dev/kvm may be there and of no use, which is no reason."""
    complaints = iter(["no KVM", "bad kernel"])
    monkeypatch.setattr(_tries, "_enter", lambda *_: next(complaints))
    tried = _tries._try_form((Qemu(), Qemu()), (0, 1), "squashfs", name, LaunchSession())
    assert (tried.works, tried.says) == (False, said)
