"""One file per probe; programs/ holds what measures. Pure: builds descriptions, reads answers."""

from flowos.probes._base import Build, Probe, Program
from flowos.probes._flows import flow_of, flow_of_builds
from flowos.probes._headlines import HEADLINES, Headline, best_of
from flowos.probes._tables import PROBES

__all__ = [
    "HEADLINES",
    "PROBES",
    "Build",
    "Headline",
    "Probe",
    "Program",
    "best_of",
    "flow_of",
    "flow_of_builds",
]
