"""Pure decisions: what to run, when to stop, what to believe. No clock, no files."""

from flowos.plan._compare import compare
from flowos.plan._intervals import wilson
from flowos.plan._more import rounds_to_tell
from flowos.plan._order import drawn
from flowos.plan._overall import OVERALL, overall
from flowos.plan._regimes import Regimes, regimes
from flowos.plan._rounds import judged, narrowed, next_round, turns
from flowos.plan._schedule import Fuse, Schedule, Step, Unit, compile_flow
from flowos.plan._sides import UNPAIRED, Numbers, Outcome, by_probe, outcome, side_by_side
from flowos.plan._simulated import Noise, SimulatedMachine, Stalls, simulate
from flowos.plan._steps import (
    CacheStep,
    Plateau,
    find_plateaus,
    find_steps,
    memory_plateau,
)
from flowos.plan._summary import no_ceiling, no_nominal, summarize
from flowos.plan._trust import LIMITS, Limits, judge, limits_for

__all__ = [
    "LIMITS",
    "OVERALL",
    "UNPAIRED",
    "CacheStep",
    "Fuse",
    "Limits",
    "Noise",
    "Numbers",
    "Outcome",
    "Plateau",
    "Regimes",
    "Schedule",
    "SimulatedMachine",
    "Stalls",
    "Step",
    "Unit",
    "by_probe",
    "compare",
    "compile_flow",
    "drawn",
    "find_plateaus",
    "find_steps",
    "judge",
    "judged",
    "limits_for",
    "memory_plateau",
    "narrowed",
    "next_round",
    "no_ceiling",
    "no_nominal",
    "outcome",
    "overall",
    "regimes",
    "rounds_to_tell",
    "side_by_side",
    "simulate",
    "summarize",
    "turns",
    "wilson",
]
