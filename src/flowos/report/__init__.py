"""Renders samples and charts as text, Markdown, CSV, JSON, HTML, metrics. Opens no file."""

from flowos.report._acceptance_text import baseline_text, check_text
from flowos.report._baseline_json import baseline_json, read_baseline_json
from flowos.report._convergence import ConvergencePlot, convergence_text
from flowos.report._csv import csv
from flowos.report._deployments_text import deployments_text
from flowos.report._json import json, json_schema, read_json
from flowos.report._junit import junit
from flowos.report._log_text import log_text
from flowos.report._machines_text import changes_text, slow_line, slow_text
from flowos.report._markdown import markdown
from flowos.report._openmetrics import openmetrics
from flowos.report._progress_line import cut, progress_line
from flowos.report._published import published
from flowos.report._report import ChartStep, HeadlineNumber, Report, Section
from flowos.report._side_by_side import ReportedRun, SideBySide, side_by_side_json
from flowos.report._side_by_side_text import side_by_side_text
from flowos.report._slice_words import accounted_words, asked_words
from flowos.report._storage_text import storage_lines
from flowos.report._suite import SuiteFigure, SuiteReport, figure_name, suite_json
from flowos.report._suite_text import suite_text
from flowos.report._text import runs_text, text, verdicts_text
from flowos.report._timeline import chrome_trace
from flowos.report._units import number
from flowos.report._wrap import wrapped
from flowos.report.page import (
    convergence_html,
    convergence_svg,
    deployments_html,
    html,
    side_by_side_html,
    suite_html,
    timeline_html,
)

__all__ = [
    "ChartStep",
    "ConvergencePlot",
    "HeadlineNumber",
    "Report",
    "ReportedRun",
    "Section",
    "SideBySide",
    "SuiteFigure",
    "SuiteReport",
    "accounted_words",
    "asked_words",
    "baseline_json",
    "baseline_text",
    "changes_text",
    "check_text",
    "chrome_trace",
    "convergence_html",
    "convergence_svg",
    "convergence_text",
    "csv",
    "cut",
    "deployments_html",
    "deployments_text",
    "figure_name",
    "html",
    "json",
    "json_schema",
    "junit",
    "log_text",
    "markdown",
    "number",
    "openmetrics",
    "progress_line",
    "published",
    "read_baseline_json",
    "read_json",
    "runs_text",
    "side_by_side_html",
    "side_by_side_json",
    "side_by_side_text",
    "slow_line",
    "slow_text",
    "storage_lines",
    "suite_html",
    "suite_json",
    "suite_text",
    "text",
    "timeline_html",
    "verdicts_text",
    "wrapped",
]
