"""Flow in Cloud: devices of a pool behind Ethernet, attached to a computer of one's choice."""

from flowos.model import FigurePart, PaperFigure, PaperSuite

_ATTACHED = (
    "a GPU of this machine, the paper's local case (else its processors, as device cpu); ExpEther"
    " and rCUDA are products that nothing here can stand in for"
)

FIC = PaperSuite(
    name="fic",
    title="FlowOS on Flow in Cloud: local and remote devices",
    figures=(
        PaperFigure(
            number="4",
            title="ib_write_bw: bandwidth over message size",
            caption="ib_write_bw",
            parts=(FigurePart(probe="mpi", metrics=("bandwidth",)),),
            instead="MPI between two ranks of this node, in place of InfiniBand QDR between two",
            between="MPI between two nodes of the pool, in place of InfiniBand QDR by its verbs",
        ),
        PaperFigure(
            number="5",
            title="CPU to GPU: bandwidth over transfer size, local, ExpEther, rCUDA",
            caption="bandwidthTest",
            parts=(FigurePart(probe="gpu_copy"),),
            instead=_ATTACHED,
        ),
        PaperFigure(
            number="table 2",
            title="DeepBench: GEMM and convolution",
            caption="DeepBench (GEMM, Convolution)",
            parts=(FigurePart(probe="deepbench"),),
            instead=_ATTACHED,
        ),
        PaperFigure(
            number="6",
            title="nbody of 256,000 bodies, f32 and f64, over GPUs",
            caption="nbody",
            parts=(FigurePart(probe="nbody"),),
            instead=_ATTACHED,
        ),
        PaperFigure(
            number="7",
            title="fio: operations of NVMe storage, local and by ExpEther",
            caption="fio (IOPS)",
            parts=(FigurePart(probe="remote_storage", metrics=("iops",)),),
            instead="the storage of --scratch, and the same through a server of network block"
            " devices (nbdkit) on this machine, in place of ExpEther",
        ),
    ),
)
