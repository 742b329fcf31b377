"""Papers whose measurements are repeated: a file for each, which names probes as data.

To have a probe show a figure, add a `FigurePart` of its name to that figure. One that does not
exist here is no error: the figure then says that no probe measures it.
"""

from flowos.model import PaperSuite
from flowos.probes.suites.aaic import AAIC
from flowos.probes.suites.abci import ABCI
from flowos.probes.suites.cyclecloud import CYCLECLOUD
from flowos.probes.suites.fic import FIC
from flowos.probes.suites.reads import READS

SUITES: dict[str, PaperSuite] = {
    suite.name: suite for suite in (AAIC, ABCI, READS, CYCLECLOUD, FIC)
}

__all__ = ["SUITES"]
