"""Renders the report as one self-contained HTML page."""

from typing import TYPE_CHECKING

from flowos._lazy import lazily

_PARTS = {
    "_convergence": "convergence_html convergence_svg",
    "_deployments": "deployments_html",
    "_page": "html",
    "_side_by_side": "side_by_side_html",
    "_suite": "suite_html",
    "_timeline": "timeline_html",
}

if TYPE_CHECKING:
    from flowos.report.page._convergence import (
        convergence_html as convergence_html,
        convergence_svg as convergence_svg,
    )
    from flowos.report.page._deployments import (
        deployments_html as deployments_html,
    )
    from flowos.report.page._page import (
        html as html,
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
