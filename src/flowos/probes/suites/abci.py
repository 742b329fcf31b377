"""Performance of a GPU node of ABCI, of its network and its storage."""

from flowos.model import FigurePart, PaperFigure, PaperSuite

_BETWEEN = (
    "between two ranks of this node, and from memory of its GPU where the MPI is CUDA-aware; the"
    " paper's were on two nodes with two ports of InfiniBand EDR: see `flowos measure --pool NAME`,"
    " which also asks for GDR, pipeline and hybrid by name where the MPI has them"
)
_ON_POOL = (
    "between two nodes of the pool; the paper's had two ports of InfiniBand EDR, and GPUs too"
)

ABCI = PaperSuite(
    name="abci",
    title="GPU nodes of ABCI for AI and big data",
    figures=(
        PaperFigure(
            number="4",
            title="GEMM on one GPU, by precision",
            caption="単体の GPU での GEMM の性能",
            parts=(FigurePart(probe="gpu_gemm", metrics=("flops",)),),
            instead="by PyTorch, whose library chooses its kernels; device cpu is the processors of"
            " a machine without a GPU",
        ),
        PaperFigure(
            number="5",
            title="GEMM on the CPU, 1 socket, by instruction set",
            caption="GEMM(CPU, 1 Socket) の性能",
            parts=(FigurePart(probe="gemm", cores="socket"),),
            instead="each BLAS library found here, in place of MKL 2018",
        ),
        PaperFigure(
            number="6",
            title="GEMM on the CPU, 2 sockets, by instruction set",
            caption="GEMM(CPU, 2 Sockets) の性能",
            parts=(FigurePart(probe="gemm", cores="all"),),
            instead="each BLAS library found here, in place of MKL 2018",
            sockets=2,
        ),
        PaperFigure(
            number="7",
            title="STREAM on a GPU, on 1 socket and on 2",
            caption="STREAM の性能",
            parts=(FigurePart(probe="gpu_stream"), FigurePart(probe="stream")),
            instead="a program of FlowOS's own with STREAM's four kernels, and PyTorch's operations"
            " on a GPU",
        ),
        PaperFigure(
            number="8",
            title="MPI bandwidth over message size, hosts and GPUs",
            caption="OSU Micro Benchmarks によるネットワーク性能 (バンド幅)",
            parts=(
                FigurePart(
                    probe="mpi",
                    metrics=(
                        "bandwidth",
                        "gpu_bandwidth",
                        "bidirectional_bandwidth",
                        "gpu_bidirectional_bandwidth",
                        "multi_pair_bandwidth",
                        "message_rate",
                    ),
                ),
            ),
            instead=_BETWEEN,
            between=_ON_POOL,
        ),
        PaperFigure(
            number="9",
            title="MPI latency over message size",
            caption="OSU Micro Benchmarks によるネットワーク性能 (遅延)",
            parts=(FigurePart(probe="mpi", metrics=("latency", "gpu_latency")),),
            instead=_BETWEEN,
            between=_ON_POOL,
        ),
        PaperFigure(
            number="10",
            title="AllReduce, AllGather, ReduceScatter by NCCL",
            caption="nccl-tests の性能",
            parts=(FigurePart(probe="collectives", metrics=("bus_bandwidth",)),),
            instead="GPUs of this machine by PyTorch, and by nccl-tests where they are in PATH, or"
            " processors by Gloo; the paper's were 4 to 128 GPUs on 1 to 32 nodes: see --pool NAME"
            " --nodes N",
            between="GPUs of 1, 2, 4 .. nodes of the pool by PyTorch, or two processors of each by"
            " Gloo; the paper's were 4 to 128 GPUs on 1 to 32 nodes",
        ),
        PaperFigure(
            number="11",
            title="IOR: sequential writes and reads on a shared file system",
            caption="IOR の性能",
            parts=(FigurePart(probe="parallel_io"),),
            instead="processes of this machine on the storage of --scratch; the paper's clients"
            " were 1 to 32 nodes: see --pool NAME --nodes N",
            between="a client on each of 1, 2, 4 .. nodes of the pool, on the storage of --scratch;"
            " the paper's clients were 1 to 32 nodes",
        ),
        PaperFigure(
            number="12",
            title="mdtest: operations on metadata",
            caption="mdtest の性能",
            parts=(FigurePart(probe="metadata"),),
            instead="processes of this machine on the storage of --scratch; the paper's clients"
            " were 1 to 32 nodes with two processes each: see --pool NAME --nodes N",
            between="two processes on each of 1, 2, 4 .. nodes of the pool, on the storage of"
            " --scratch; the paper's were 1 to 32 nodes",
        ),
        PaperFigure(
            number="13",
            title="ResNet-50 on 256 GPUs: accuracy over time",
            caption="分散深層学習の性能",
            parts=(
                FigurePart(
                    probe="training",
                    metrics=(
                        *("train_top1", "validation_top1", "elapsed"),
                        *("images_per_second", "stage"),
                    ),
                    levels=(("loader", "feed"),),
                ),
            ),
            instead="how fast the GPUs of this node train it with made images, or two of its"
            " processors a small network, on what, and with which accuracy after each epoch; the"
            " paper's accuracy is that of 100 epochs of ImageNet on 256 GPUs of 64 nodes: with"
            " these examples/resnet50/train.py logs it",
        ),
    ),
)
