"""Renders samples and charts as text, Markdown, CSV, JSON, HTML, metrics. Opens no file."""

from typing import TYPE_CHECKING

from flowos._lazy import lazily

_PARTS = {
    "_acceptance_text": "baseline_text check_text",
    "_baseline_json": "baseline_json read_baseline_json",
    "_convergence": "ConvergencePlot convergence_text",
    "_csv": "NUMBER_COLUMNS csv",
    "_deployments_text": "deployments_text",
    "_json": "json json_schema read_json",
    "_junit": "junit",
    "_log_text": "log_text",
    "_machines_text": "changes_text slow_line slow_text",
    "_markdown": "markdown",
    "_openmetrics": "openmetrics",
    "_progress_line": "cut progress_line",
    "_published": "published",
    "_report": "ChartStep HeadlineNumber Report Section",
    "_side_by_side": "ReportedRun SideBySide side_by_side_json",
    "_side_by_side_text": "side_by_side_text",
    "_slice_words": "accounted_words asked_words job_words",
    "_storage_text": "storage_lines tier_words",
    "_suite": "SuiteFigure SuiteReport figure_name may_show shown_parts suite_json unmeasured_in",
    "_suite_csv": "suite_csv",
    "_suite_text": "suite_text",
    "_text": "runs_text text verdicts_text",
    "_timeline": "chrome_trace",
    "_units": "number size",
    "_wrap": "WIDTH folded safe wrapped",
    "page._convergence": "convergence_cell convergence_html convergence_svg",
    "page._deployments": "deployments_html",
    "page._page": "html html_cell",
    "page._side_by_side": "side_by_side_html",
    "page._suite": "suite_html",
    "page._timeline": "timeline_html",
}

if TYPE_CHECKING:
    from flowos.report._acceptance_text import (
        baseline_text as baseline_text,
        check_text as check_text,
    )
    from flowos.report._baseline_json import (
        baseline_json as baseline_json,
        read_baseline_json as read_baseline_json,
    )
    from flowos.report._convergence import (
        ConvergencePlot as ConvergencePlot,
        convergence_text as convergence_text,
    )
    from flowos.report._csv import (
        NUMBER_COLUMNS as NUMBER_COLUMNS,
        csv as csv,
    )
    from flowos.report._deployments_text import (
        deployments_text as deployments_text,
    )
    from flowos.report._json import (
        json as json,
        json_schema as json_schema,
        read_json as read_json,
    )
    from flowos.report._junit import (
        junit as junit,
    )
    from flowos.report._log_text import (
        log_text as log_text,
    )
    from flowos.report._machines_text import (
        changes_text as changes_text,
        slow_line as slow_line,
        slow_text as slow_text,
    )
    from flowos.report._markdown import (
        markdown as markdown,
    )
    from flowos.report._openmetrics import (
        openmetrics as openmetrics,
    )
    from flowos.report._progress_line import (
        cut as cut,
        progress_line as progress_line,
    )
    from flowos.report._published import (
        published as published,
    )
    from flowos.report._report import (
        ChartStep as ChartStep,
        HeadlineNumber as HeadlineNumber,
        Report as Report,
        Section as Section,
    )
    from flowos.report._side_by_side import (
        ReportedRun as ReportedRun,
        SideBySide as SideBySide,
        side_by_side_json as side_by_side_json,
    )
    from flowos.report._side_by_side_text import (
        side_by_side_text as side_by_side_text,
    )
    from flowos.report._slice_words import (
        accounted_words as accounted_words,
        asked_words as asked_words,
        job_words as job_words,
    )
    from flowos.report._storage_text import (
        storage_lines as storage_lines,
        tier_words as tier_words,
    )
    from flowos.report._suite import (
        SuiteFigure as SuiteFigure,
        SuiteReport as SuiteReport,
        figure_name as figure_name,
        may_show as may_show,
        shown_parts as shown_parts,
        suite_json as suite_json,
        unmeasured_in as unmeasured_in,
    )
    from flowos.report._suite_csv import (
        suite_csv as suite_csv,
    )
    from flowos.report._suite_text import (
        suite_text as suite_text,
    )
    from flowos.report._text import (
        runs_text as runs_text,
        text as text,
        verdicts_text as verdicts_text,
    )
    from flowos.report._timeline import (
        chrome_trace as chrome_trace,
    )
    from flowos.report._units import (
        number as number,
        size as size,
    )
    from flowos.report._wrap import (
        WIDTH as WIDTH,
        folded as folded,
        safe as safe,
        wrapped as wrapped,
    )
    from flowos.report.page._convergence import (
        convergence_cell as convergence_cell,
        convergence_html as convergence_html,
        convergence_svg as convergence_svg,
    )
    from flowos.report.page._deployments import (
        deployments_html as deployments_html,
    )
    from flowos.report.page._page import (
        html as html,
        html_cell as html_cell,
    )
    from flowos.report.page._side_by_side import (
        side_by_side_html as side_by_side_html,
    )
    from flowos.report.page._suite import (
        suite_html as suite_html,
    )
    from flowos.report.page._timeline import (
        timeline_html as timeline_html,
    )
else:
    __getattr__, __dir__, __all__ = lazily(__name__, _PARTS)
