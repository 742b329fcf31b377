"""How an MPI is made to send from the memory of GPUs, by the names of figure 8 of seed 001.

GDR: the network adapter reads the GPU's memory (GPUDirect RDMA). pipeline: through the host's, in
parts. hybrid: GDR for short messages, pipeline for long ones. "": as the MPI itself chooses, as
within a node, where these are of no account.
Sources: the user guides of MVAPICH2-GDR 2.3 and of Open MPI 2 to 4 ("Running CUDA-aware Open MPI"),
whose openib had 30000 bytes as its limit; issues 5462 and 6206 of openucx/ucx for UCX.
"""

from flowos.model import Mpi, Pairs

ALL_BYTES = str(1 << 30)

_CUDA: dict[str, Pairs] = {
    "mvapich": (("MV2_USE_CUDA", "1"),),
    "mpich": (("MPIR_CVAR_ENABLE_GPU", "1"),),
    "intel": (("I_MPI_OFFLOAD", "1"),),
}

_WAYS: dict[str, tuple[tuple[str, Pairs], ...]] = {
    "openmpi": (
        ("hybrid", (("OMPI_MCA_btl_openib_want_cuda_gdr", "1"),)),
        (
            "GDR",
            (
                ("OMPI_MCA_btl_openib_want_cuda_gdr", "1"),
                ("OMPI_MCA_btl_openib_cuda_rdma_limit", ALL_BYTES),
                ("UCX_IB_GPU_DIRECT_RDMA", "y"),
                ("UCX_RNDV_SCHEME", "get_zcopy"),
            ),
        ),
        (
            "pipeline",
            (("OMPI_MCA_btl_openib_want_cuda_gdr", "0"), ("UCX_IB_GPU_DIRECT_RDMA", "n")),
        ),
    ),
    "mvapich": (
        ("hybrid", (("MV2_USE_GPUDIRECT", "1"),)),
        ("GDR", (("MV2_USE_GPUDIRECT", "1"), ("MV2_GPUDIRECT_LIMIT", ALL_BYTES))),
        ("pipeline", (("MV2_USE_GPUDIRECT", "0"),)),
    ),
}


def gpu_ways(mpi: Mpi, between_nodes: bool) -> tuple[str, ...]:
    """The ways that can be asked of this MPI; its own choice alone where there is none to ask."""
    asked = _WAYS.get(mpi.family, ()) if between_nodes else ()
    return tuple(name for name, _ in asked) or ("",)


def gpu_variables(family: str, way: str) -> Pairs:
    """The variables of the ranks for this way."""
    return (*_CUDA.get(family, ()), *dict(_WAYS.get(family, ())).get(way, ()))
