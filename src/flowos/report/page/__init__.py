"""The report as one self-contained HTML page."""

from flowos.report.page._page import html
from flowos.report.page._trace import trace_html, trace_svg

__all__ = ["html", "trace_html", "trace_svg"]
