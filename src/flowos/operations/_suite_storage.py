"""Which storage the figures of a suite are of: as the page of the suite says it."""

from pathlib import Path

from flowos._dataclasses import replace
from flowos.model import MeasurementRequest, PaperFigure, Pool
from flowos.operations._scratch import OWN_STORAGE
from flowos.probes import probe_named
from flowos.report import tier_words


def with_storage(
    figure: PaperFigure, request: MeasurementRequest, pool: Pool | None
) -> PaperFigure:
    """The figure; if its probes measure storage, its `instead` says which folders that is.

    pool: where it is measured; None on this machine.
    """
    found = [probe for part in figure.parts if (probe := probe_named(part.probe)) is not None]
    if not any(probe.info.on_storage for probe in found):
        return figure
    said = f"The storage is {_shared(request, pool)}"
    if any(probe.info.on_own_storage for probe in found):
        said += f"; each node's own is {_own(request, pool)}"
    return replace(figure, instead=f"{figure.instead}. {said}" if figure.instead else said)


def _shared(request: MeasurementRequest, pool: Pool | None) -> str:
    folder = str(request.scratch)
    if pool is None or not pool.shared or Path(pool.shared).absolute() != Path(folder):
        return folder
    return f"{folder}, the shared folder of pool {pool.name}{_promised(pool, 'shared')}"


def _own(request: MeasurementRequest, pool: Pool | None) -> str:
    """Images do not see what the pool names."""
    if pool is None or not pool.scratch or len(request.environments) > 1:
        return str(OWN_STORAGE)
    return f"{pool.scratch}, as the pool names it{_promised(pool, 'scratch')}"


def _promised(pool: Pool, key: str) -> str:
    tier = pool.tier(key)
    words = tier_words(tier) if tier else ""
    return f" (promised: {words})" if words else ""
