"""Nagai et al., AXIES 2023: virtual machines of Azure under compilers, MPIs and a solver."""

from flowos._dataclasses import replace
from flowos.model import FigurePart, PaperFigure, PaperSuite

_STREAM = FigurePart(probe="stream", metrics=("triad",))
_BETWEEN = (
    "between two ranks of this node, by each MPI found, with --full built by each compiler; the"
    " paper's were on two virtual machines with InfiniBand: see `flowos measure --pool NAME"
    " --deployments 3` for two nodes, held anew each time"
)
_COMPILERS = "the compilers that were found here, with the flags and affinities of table A"


def _stream(number: str, size: str) -> PaperFigure:
    return PaperFigure(
        number=number,
        title=f"STREAM triad over threads, {size}",
        caption=f"STREAM Triad の結果 ({size})",
        parts=(_STREAM,),
        instead=f"this machine in place of an {size}; {_COMPILERS}",
    )


def _mpi(number: str, title: str, caption: str, metric: str) -> PaperFigure:
    return PaperFigure(
        number=number,
        title=title,
        caption=caption,
        parts=(FigurePart(probe="mpi", metrics=(metric,)),),
        instead=_BETWEEN,
        between="between two nodes of the pool; the paper's were virtual machines with InfiniBand",
    )


def _with_azure(said: str, figure: PaperFigure) -> PaperFigure:
    """Of a figure that sets the paper's curve against that of Azure's web site."""
    beside = (
        "our own curve; the paper sets its own against that of Azure's web site for machines of"
        f" the HBv3 series, and says of both (section 3.2, paragraph 3): {said}"
    )
    return replace(
        figure, instead=f"{beside}; {figure.instead}", between=f"{beside}; {figure.between}"
    )


_OVER_NODES = (
    "for nodes, two ranks on each: `flowos measure --pool NAME --nodes 8 --only solve --full`, and"
    " --deployments 3 for how much their place changes it"
)
_ON_NODES = "two ranks on each of 1, 2, 4 .. nodes of the pool, in the paper's setting and in ours"
_TOTAL = FigurePart(probe="solve", metrics=("total",))
_POISSON = (("problem", "poisson"),)

CYCLECLOUD = PaperSuite(
    name="cyclecloud",
    title="Virtual machines under Azure CycleCloud",
    figures=(
        _stream("2", "HB120rs_v3"),
        _stream("3", "HC44rs"),
        _stream("4", "D96s_v5"),
        PaperFigure(
            number="table A",
            title="Compilers, flags and affinities of STREAM",
            caption="STREAM Triad ベンチマークテストでのコンパイラ等の組み合わせ",
            parts=(FigurePart(probe="stream"),),
            instead=f"{_COMPILERS}, where they differ on this machine; --full combines all of them",
            compilers=(
                ("gcc", "install GCC"),
                (
                    "icx",
                    "install Intel's oneAPI compiler, which came after icc, and have icx in PATH",
                ),
                ("nvc", "install NVIDIA's HPC SDK, and have its nvc in PATH"),
            ),
        ),
        _mpi("5", "MPI latency, HB120-16rs_v3", "MPI レイテンシ (HB120-16rs_v3)", "latency"),
        _mpi("6", "MPI bandwidth, HB120-16rs_v3", "MPI バンド幅 (HB120-16rs_v3)", "bandwidth"),
        _with_azure(
            "latency is 8 to 15 % better there",
            _mpi(
                "7",
                "MPI latency compared with Azure's own numbers",
                "MPI レイテンシの比較 (HBv3 系列)",
                "latency",
            ),
        ),
        _with_azure(
            "bandwidth is better in the paper, which does not say by how much",
            _mpi(
                "8",
                "MPI bandwidth compared with Azure's own numbers",
                "MPI バンド幅の比較 (HBv3 系列)",
                "bandwidth",
            ),
        ),
        _mpi("9", "MPI latency, HC44rs", "MPI レイテンシ (HC44rs)", "latency"),
        _mpi("10", "MPI bandwidth, HC44rs", "MPI バンド幅 (HC44rs)", "bandwidth"),
        PaperFigure(
            number="table 2",
            title="Settings of the solver: residual 1e-7, blocks of 32 rows, 20 colours",
            caption="測定条件一覧",
            parts=(replace(_TOTAL, levels=(("setting", "paper"),)),),
            instead="the paper's settings on all cores of this machine; not with --quick",
        ),
        PaperFigure(
            number="12",
            title="Solver, Poisson 256 x 256 x 512, over nodes",
            caption="ポアソン問題の測定結果",
            parts=(replace(_TOTAL, levels=_POISSON),),
            instead="cores of this machine in place of nodes, and a grid by effort: --full has the"
            f" paper's; {_OVER_NODES}",
            between=f"{_ON_NODES}; a grid by effort: --full has the paper's",
        ),
        PaperFigure(
            number="13",
            title="Solver, G3_circuit, over nodes",
            caption="G3 Circuit の測定結果",
            parts=(replace(_TOTAL, without=_POISSON),),
            instead="a generated circuit of as many unknowns (--matrix takes the paper's), on cores"
            f" of this machine in place of nodes; not with --quick; {_OVER_NODES}",
            between=f"{_ON_NODES}; a generated circuit of as many unknowns, not with --quick",
        ),
    ),
)
