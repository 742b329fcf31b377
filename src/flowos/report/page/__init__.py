"""Renders the report as one self-contained HTML page."""

from flowos.report.page._convergence import convergence_html, convergence_svg
from flowos.report.page._deployments import deployments_html
from flowos.report.page._page import html
from flowos.report.page._side_by_side import side_by_side_html
from flowos.report.page._suite import suite_html
from flowos.report.page._timeline import timeline_html

__all__ = [
    "convergence_html",
    "convergence_svg",
    "deployments_html",
    "html",
    "side_by_side_html",
    "suite_html",
    "timeline_html",
]
