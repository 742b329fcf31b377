"""One file per probe, with its programs in programs/. Pure: builds descriptions, reads answers."""

from flowos.probes._advice import merged_advice, undecided
from flowos.probes._base import (
    ENV,
    ComparedCase,
    Headline,
    Probe,
    ProbeInfo,
    Program,
    Trial,
    best_compiler,
)
from flowos.probes._build import SOURCE_SECONDS, Build, built_by, package_data
from flowos.probes._compared import (
    allowed_everywhere,
    blocked,
    entered,
    in_environment,
    verdicts_between,
)
from flowos.probes._flows import flow_of_builds, program_of_task
from flowos.probes._gpu import HOST
from flowos.probes._headlines import headlines_of
from flowos.probes._measure_command import deployment_words, measure_command, pool_words
from flowos.probes._roofline import rooflines
from flowos.probes._suspicious import SUSPICIOUS
from flowos.probes._tables import probe_named, probes_for
from flowos.probes._tuning_gain import TuningGain, in_words, tuning_gain
from flowos.probes.facts import NOMINAL
from flowos.probes.startup import timed
from flowos.probes.working_set import CACHES_END_AT

__all__ = [
    "CACHES_END_AT",
    "ENV",
    "HOST",
    "NOMINAL",
    "SOURCE_SECONDS",
    "SUSPICIOUS",
    "Build",
    "ComparedCase",
    "Headline",
    "Probe",
    "ProbeInfo",
    "Program",
    "Trial",
    "TuningGain",
    "allowed_everywhere",
    "best_compiler",
    "blocked",
    "built_by",
    "deployment_words",
    "entered",
    "flow_of_builds",
    "headlines_of",
    "in_environment",
    "in_words",
    "measure_command",
    "merged_advice",
    "package_data",
    "pool_words",
    "probe_named",
    "probes_for",
    "program_of_task",
    "rooflines",
    "timed",
    "tuning_gain",
    "undecided",
    "verdicts_between",
]
