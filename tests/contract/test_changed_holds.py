"""What every provider promises of nodes that come and go while others are held."""

import threading
import time
from collections.abc import Callable

import pytest

import flowos as fo
from flowos.engine import CancelToken, Held, Provider
from flowos.model import Ask
from tests.waiting import PATIENCE_SECONDS, comes

from .test_providers import Heard, names
from .test_providers import provider as provider
from .test_providers import several as several


def test_nodes_are_given_back_by_name(several: Provider) -> None:
    heard = Heard()
    held = several.hold(Ask(nodes=3), heard)
    first, second, third = names(held)
    less = several.give_back(held, [first, third])
    assert (less.id, names(less)) == (held.id, [second])
    assert several.attach(held.id) == less
    with pytest.raises(fo.SliceRefused, match="none of its nodes would be left; free it"):
        several.give_back(held, [second])
    more = several.resize(less, 3)
    assert names(more)[0] == second
    assert set(names(more)) == {first, second, third}
    assert heard.whats == ["held", "resized", "resized"]
    several.free(more)


def test_what_could_never_be_held_is_told_without_holding(provider: Provider) -> None:
    provider.check(Ask(nodes=provider.pool.nodes))
    for ask in (Ask(nodes=9), Ask(cores=100_000), Ask(lease_seconds=5)):
        with pytest.raises(fo.SliceRefused, match=f"pool {provider.pool.name}: "):
            provider.check(ask)


def test_a_wait_for_more_nodes_says_why(several: Provider) -> None:
    one, two = several.hold(Ask()), several.hold(Ask())
    heard, cancel = Heard(), CancelToken()

    def waits() -> None:
        with pytest.raises(fo.Cancelled):
            several.resize(one, 3, cancel, heard)

    thread = threading.Thread(target=waits)
    thread.start()
    assert comes(lambda: any(e.what == "waiting" and e.reason for e in heard.events))
    cancel.cancel()
    thread.join(PATIENCE_SECONDS)
    several.free(one)
    several.free(two)


def test_a_wait_for_nodes_is_cancelled_from_another_thread(several: Provider) -> None:
    one, two = several.hold(Ask()), several.hold(Ask())
    for wait in (
        lambda cancel: several.hold(Ask(nodes=2), cancel=cancel),
        lambda cancel: several.resize(one, 3, cancel),
    ):
        cancel, ended = CancelToken(), list[BaseException]()

        def waits(wait: Callable[[CancelToken], Held] = wait, cancel: CancelToken = cancel) -> None:
            with pytest.raises(fo.Cancelled, match="was cancelled") as raised:
                wait(cancel)
            ended.append(raised.value)  # noqa: B023 - it is joined below

        thread = threading.Thread(target=waits)
        thread.start()
        time.sleep(0.1)
        assert not ended
        cancel.cancel()
        cancel.cancel()
        thread.join(PATIENCE_SECONDS)
        assert len(ended) == 1
    assert several.attach(one.id) == one
    more = several.resize(one, 2)
    several.free(more)
    several.free(two)
