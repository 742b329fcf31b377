"""Renders the live pages of `flowos serve`: the same style and drawing as the report's pages."""

from flowos.report.page._script import SCRIPT as CURVES_SCRIPT
from flowos.report.site._frame import FOLLOWED, SERVED
from flowos.report.site._overview import Overview, overview_html, problem_html
from flowos.report.site._pools import pools_html
from flowos.report.site._program import ProgramLog, program_html
from flowos.report.site._programs import programs_html
from flowos.report.site._runs import runs_html
from flowos.report.site._script import SCRIPT as LIVE_SCRIPT
from flowos.report.site._slices import slices_html
from flowos.report.site._tables import ListPart

__all__ = [
    "CURVES_SCRIPT",
    "FOLLOWED",
    "LIVE_SCRIPT",
    "SERVED",
    "ListPart",
    "Overview",
    "ProgramLog",
    "overview_html",
    "pools_html",
    "problem_html",
    "program_html",
    "programs_html",
    "runs_html",
    "slices_html",
]
