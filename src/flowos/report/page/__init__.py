"""The report as one self-contained HTML page."""

from flowos.report.page._page import html

__all__ = ["html"]
