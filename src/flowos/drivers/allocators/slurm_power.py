"""Nodes that Slurm powers up and down: its command lines, and the states that it prints.

A node that could not be made is drained with a reason, which ends its job at once; POWER_DOWN_FORCE
takes it back to the powered-down nodes. The order matters: jobs are asked for and spoken to before,
as a drained node has none. See docs/cloud.md.
"""

import re
from collections.abc import Mapping
from typing import Literal

from flowos._dataclasses import dataclass
from flowos.drivers._slurm_values import read_hosts
from flowos.model import Argv

_COLUMNS = "NodeList:|,StateComplete:|,Timestamp:|,Reason:"
_DOWN = {"powered_down", "powering_down", "power_down"}
_AGAIN = re.compile(r"FlowOS: .*; again at (?P<at>\S+)")
_TIMED_OUT = "ResumeTimeout reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerState:
    """A node as `sinfo` shows it. since: of the reason, in this machine's time; "" if unknown."""

    node: str
    flags: frozenset[str]
    reason: str = ""
    since: str = ""

    @property
    def owns_machine(self) -> bool:
        """Is it powered up, or on its way there?"""
        return not self.flags & _DOWN

    @property
    def is_up(self) -> bool:
        """Has its machine come, and is it not on its way down?"""
        return "cloud" in self.flags and not self.flags & (_DOWN | {"powering_up", "down"})

    @property
    def is_out(self) -> bool:
        """Does Slurm give it to no job?"""
        return bool(self.flags & {"drain", "down"})

    @property
    def timed_out(self) -> bool:
        """Has Slurm given up to wait for it?"""
        return "down" in self.flags and self.reason == _TIMED_OUT

    def is_due(self, now: str, given_up_before: str) -> bool:
        """Is it time to give it back? now: as `again_at`. given_up_before: as `since`.

        Text is compared: both are written from the year on.
        """
        if "cloud" not in self.flags:
            return False
        if self.timed_out:
            return self.since <= given_up_before
        return self.is_out and "" < self.again_at <= now

    @property
    def again_at(self) -> str:
        """When it is to be given back, ISO 8601 in UTC, as `reason_for` wrote it, or ""."""
        found = _AGAIN.fullmatch(self.reason)
        return found["at"] if found else ""


def reason_for(why: str, again_at: str) -> str:
    """A node's reason, from which any later process knows what to do and when."""
    return f"FlowOS: {_one_line(why)}; again at {again_at}"


def comment_for(node: str, why: str) -> str:
    """What a job's AdminComment says of its node."""
    return f"FlowOS: node {node}: {_one_line(why)}"


def refused_step(
    state: PowerState | None, reason: str, *, due: bool
) -> Literal["wait", "say", "back", "leave"]:
    """What is done next with a node that was refused for a reason, and is to come back.

    Slurm gives up on it too, in its own words (`say`), and hides it maybe (None). What a person
    changed is left as it is.
    """
    if state is None:
        return "back" if due else "wait"
    if state.timed_out:
        return "back" if due else "say"
    if not state.is_out or state.reason != reason:
        return "leave"
    return "back" if due else "wait"


def comments_words(name: str) -> Argv:
    """Ask for the AdminComment of jobs by their name."""
    return ("squeue", "--noheader", "--states=all", f"--name={name}", "--Format=admin_comment:512")


def read_comment(text: str) -> str:
    """Of `comments_words`: what `comment_for` wrote, or ""; people write comments too."""
    ours = (line.strip().partition("FlowOS: ") for line in text.splitlines())
    return next((said for before, found, said in ours if found and not before), "")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def config_words() -> Argv:
    return ("scontrol", "show", "config")


def read_cluster(text: str) -> str:
    """Of `config_words`: the cluster's name."""
    found = re.search(r"^ClusterName\s*=\s*(\S+)", text, re.MULTILINE)
    return found[1] if found else ""


def power_words() -> Argv:
    return ("sinfo", "--all", "--noheader", "--Node", f"--Format={_COLUMNS}")


def read_power(text: str) -> Mapping[str, PowerState]:
    """Of `power_words`, by name. A node that is not there is powered down, and hidden."""
    rows = (line.split("|", 3) for line in text.splitlines())
    found = (
        PowerState(
            node=node,
            flags=frozenset(state.lower().rstrip("*~#!%$@^-").split("+")),
            reason="" if reason.strip() == "none" else reason.strip(),
            since="" if since == "Unknown" else since,
        )
        for node, state, since, reason in (row for row in rows if len(row) == 4)
    )
    return {state.node: state for state in found}


def jobs_on_words(node: str) -> Argv:
    return ("squeue", "--noheader", f"--nodelist={node}", "--format=%A")


def read_job_ids(text: str) -> tuple[str, ...]:
    """Of `jobs_on_words`; other lines, as a site's greeting, are passed over."""
    return tuple(line.strip() for line in text.splitlines() if line.strip().isdecimal())


def comment_words(job: str, comment: str) -> Argv:
    return ("scontrol", "update", f"JobId={job}", f"AdminComment={comment}")


def drain_words(node: str, reason: str) -> Argv:
    return ("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")


def down_words(node: str, reason: str) -> Argv:
    """Its jobs end at once, or go back into the queue; POWER_DOWN_FORCE alone asks the machine."""
    return ("scontrol", "update", f"NodeName={node}", "State=DOWN", f"Reason={reason}")


def reason_words(node: str, reason: str) -> Argv:
    return ("scontrol", "update", f"NodeName={node}", f"Reason={reason}")


def power_down_words(node: str) -> Argv:
    return ("scontrol", "update", f"NodeName={node}", "State=POWER_DOWN_FORCE")


def address_words(node: str, address: str) -> Argv:
    return ("scontrol", "update", f"NodeName={node}", f"NodeAddr={address}")


def read_node_names(text: str) -> tuple[str, ...]:
    """Of a list as Slurm gives it to its programs. Raises SliceRefused if it is none."""
    return read_hosts(text)
