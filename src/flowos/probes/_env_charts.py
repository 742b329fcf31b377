"""Charts that compare environments."""

from flowos.model import Chart
from flowos.probes._base import ENV


def env_curve(title: str, x: str, metric: str, facet: str, about: str, y_label: str) -> Chart:
    """A curve over sizes for each environment."""
    return Chart(
        title=title,
        kind="curve",
        x=x,
        metrics=(metric,),
        series=(ENV,),
        facets=(facet,),
        x_label={"n": "n (matrices of n x n)", "bytes": "message, bytes"}[x],
        y_label=y_label,
        log_x=True,
        log_y=x == "bytes",
        ceilings=False,
        about=about,
    )


def env_bars(title: str, x: str, metric: str, facets: tuple[str, ...], y_label: str) -> Chart:
    """A group for each level of `x`, with a bar for each environment."""
    return Chart(
        title=title,
        kind="bars",
        x=x,
        metrics=(metric,),
        series=(ENV,),
        facets=facets,
        y_label=y_label,
        ceilings=False,
    )
