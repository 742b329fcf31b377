"""Renders samples and charts as text, Markdown, CSV, JSON, HTML, metrics. Opens no file."""

from flowos.report._convergence import ConvergencePlot, convergence_text
from flowos.report._csv import csv
from flowos.report._deployments_text import deployments_text
from flowos.report._json import json, json_schema, read_json
from flowos.report._log_text import log_text
from flowos.report._markdown import markdown
from flowos.report._openmetrics import openmetrics
from flowos.report._progress_line import cut, progress_line
from flowos.report._report import ChartStep, HeadlineNumber, Report, Section
from flowos.report._slice_words import accounted_words, asked_words
from flowos.report._storage_text import storage_lines
from flowos.report._text import runs_text, text, verdicts_text
from flowos.report._timeline import chrome_trace
from flowos.report._units import number
from flowos.report.page import (
    convergence_html,
    convergence_svg,
    deployments_html,
    html,
    timeline_html,
)

__all__ = [
    "ChartStep",
    "ConvergencePlot",
    "HeadlineNumber",
    "Report",
    "Section",
    "accounted_words",
    "asked_words",
    "chrome_trace",
    "convergence_html",
    "convergence_svg",
    "convergence_text",
    "csv",
    "cut",
    "deployments_html",
    "deployments_text",
    "html",
    "json",
    "json_schema",
    "log_text",
    "markdown",
    "number",
    "openmetrics",
    "progress_line",
    "read_json",
    "runs_text",
    "storage_lines",
    "text",
    "timeline_html",
    "verdicts_text",
]
