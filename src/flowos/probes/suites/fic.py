"""Flow in Cloud: devices of a pool behind Ethernet, attached to a computer of one's choice."""

from flowos.model import FigurePart, PaperFigure, PaperSuite

_ATTACHED = (
    "a GPU of this machine, the paper's local case (else its processors, as device cpu); ExpEther"
    " and rCUDA are products that nothing here can stand in for"
)
_REMOTE = (
    "a GPU of this machine, the paper's local case (else memory of its processors, as device cpu);"
    " ExpEther and rCUDA are products, in their place remote is the device of a process on"
)

FIC = PaperSuite(
    name="fic",
    title="FlowOS on Flow in Cloud: local and remote devices",
    figures=(
        PaperFigure(
            number="4",
            title="ib_write_bw: bandwidth over message size",
            caption="ib_write_bw",
            parts=(
                FigurePart(
                    probe="rdma", metrics=("bandwidth",), levels=(("program", "ib_write_bw"),)
                ),
                FigurePart(probe="mpi", metrics=("bandwidth",)),
            ),
            instead="where this node has an RDMA device, ib_write_bw through it and back; MPI"
            " between two ranks; the paper's was between two nodes, by InfiniBand QDR",
            between="where the nodes have an RDMA device, ib_write_bw between two of the pool; MPI"
            " between them; the paper's was by InfiniBand QDR",
        ),
        PaperFigure(
            number="5",
            title="CPU to GPU: bandwidth over transfer size, local, ExpEther, rCUDA",
            caption="bandwidthTest",
            parts=(FigurePart(probe="gpu_copy"), FigurePart(probe="remote_copy")),
            instead=f"{_REMOTE} this machine, reached by TCP's loopback",
            between=f"{_REMOTE} another node of the pool, reached by TCP",
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
