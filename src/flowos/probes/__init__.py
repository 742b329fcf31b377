"""One file per probe; programs/ holds what measures. Pure: builds descriptions, reads answers."""

from flowos.probes._advice import advice, merged_advice
from flowos.probes._base import Build, Probe, Program, best_compiler, built_by
from flowos.probes._compared import (
    CHARTS,
    COMPARED,
    ENV,
    ComparedCase,
    allowed_everywhere,
    blocked,
    compared,
    decides,
    entered,
    in_environment,
    margin_of,
    verdicts_between,
)
from flowos.probes._fio_cache import cache_answers
from flowos.probes._flows import flow_of, flow_of_builds
from flowos.probes._headlines import CEILINGS, HEADLINES, Headline, best_of
from flowos.probes._nominal import nominal_of
from flowos.probes._suspect import SUSPECT
from flowos.probes._tables import PROBES
from flowos.probes._worth import Worth, in_words, worth
from flowos.probes.facts import NOMINAL
from flowos.probes.flops import doubts
from flowos.probes.gemm import left_out, slow_defaults
from flowos.probes.solve import equal_answers
from flowos.probes.startup import Startup, timed
from flowos.probes.stream import merged
from flowos.probes.working_set import CACHES_END_AT, caches_found

__all__ = [
    "CACHES_END_AT",
    "CEILINGS",
    "CHARTS",
    "COMPARED",
    "ENV",
    "HEADLINES",
    "NOMINAL",
    "PROBES",
    "SUSPECT",
    "Build",
    "ComparedCase",
    "Headline",
    "Probe",
    "Program",
    "Startup",
    "Worth",
    "advice",
    "allowed_everywhere",
    "best_compiler",
    "best_of",
    "blocked",
    "built_by",
    "cache_answers",
    "caches_found",
    "compared",
    "decides",
    "doubts",
    "entered",
    "equal_answers",
    "flow_of",
    "flow_of_builds",
    "in_environment",
    "in_words",
    "left_out",
    "margin_of",
    "merged",
    "merged_advice",
    "nominal_of",
    "slow_defaults",
    "timed",
    "verdicts_between",
    "worth",
]
