"""Sato and Ogawa: is work in a user-level container as fast as bare metal?"""

from flowos.model import FigurePart, PaperFigure, PaperSuite

AAIC = PaperSuite(
    name="aaic",
    title="Linux containers on the AI cloud AAIC: bare metal and Singularity",
    between_environments=True,
    figures=(
        PaperFigure(
            number="5",
            title="GEMM on a GPU",
            caption="GEMM(GPU) の性能",
            parts=(FigurePart(probe="gpu_gemm", metrics=("flops",)),),
            instead="by PyTorch, whose library chooses its kernels; device cpu is the processors of"
            " a machine without a GPU",
        ),
        PaperFigure(
            number="6",
            title="GEMM on the CPU",
            caption="GEMM(CPU) の性能",
            parts=(FigurePart(probe="gemm"),),
            instead="a BLAS library that was found here, in place of MKL 2017",
        ),
        PaperFigure(
            number="7",
            title="STREAM, entered by exec, shell and run",
            caption="STREAM の性能",
            parts=(FigurePart(probe="stream"), FigurePart(probe="startup")),
            instead="a program of FlowOS's own with STREAM's four kernels, and the time of a start."
            " With --env each way of entering is an axis of its own",
        ),
        PaperFigure(
            number="8",
            title="OSU micro-benchmarks: bandwidth, latency, AllReduce",
            caption="OSU Micro Benchmarks の性能",
            parts=(FigurePart(probe="mpi"), FigurePart(probe="collectives")),
            instead="between two ranks of this node, by OSU's definitions, and from memory of its"
            " GPU where the MPI is CUDA-aware; the paper's were on two nodes: see"
            " `flowos measure --pool NAME`",
            between="MPI between two nodes of the pool, by OSU's definitions, and collectives of"
            " PyTorch over its nodes; the paper's were on hosts and on GPUs",
        ),
        PaperFigure(
            number="9",
            title="fio, throughput in blocks of 128 KB",
            caption="fio の性能 (I/O スループット)",
            parts=(FigurePart(probe="fio", metrics=("bandwidth",)),),
            instead="the storage of --scratch, in place of a SATA SSD",
        ),
        PaperFigure(
            number="10",
            title="fio, random operations of 4 KB, depths 1 and 16",
            caption="fio の性能 (IOPS)",
            parts=(FigurePart(probe="fio", metrics=("iops",)),),
            instead="the storage of --scratch, in place of a SATA SSD; 70 % reads and 30 % writes"
            " in the mixed case, as there",
        ),
        PaperFigure(
            number="11",
            title="ResNet-50 on 64 GPUs: accuracy over time",
            caption="分散深層学習の性能",
            parts=(
                FigurePart(
                    probe="training",
                    metrics=("images_per_second", "stage"),
                    levels=(("loader", "feed"),),
                ),
            ),
            instead="how fast the GPUs of this node train it with made images, or two of its"
            " processors a small network, and on what; accuracy needs ImageNet and"
            " 64 GPUs of 8 nodes: with these examples/resnet50/train.py logs it",
        ),
    ),
)
