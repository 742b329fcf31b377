"""FlowOS as a package of Spack: copy this folder into `packages/` of a repository of yours.

Until there is a release: name a checkout by `git` below, then `spack install py-flowos-hpc@main`.
"""

from spack.package import depends_on, license, requires, variant, version
from spack_repo.builtin.build_systems.python import PythonPackage


class PyFlowosHpc(PythonPackage):
    """One place to run AI and HPC work, and the measurements that show which machine is the right
    one."""

    git = "file:///path/of/a/checkout/of/flowos"

    license("Apache-2.0")

    version("main", branch="main")

    variant("mpi", default=True, description="MPI, which is then measured too")
    variant("fio", default=True, description="fio, by which storage is measured")
    variant("parquet", default=False, description="Feeds from Parquet, and reports as Parquet")

    requires("platform=linux")

    depends_on("c", type=("build", "run"))  # programs that measure are compiled where they run
    depends_on("cxx", type=("build", "run"))
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-scikit-build-core@0.11:", type="build")
    depends_on("py-nanobind@2.9:", type="build")
    depends_on("cmake@3.26:", type="build")
    depends_on("ninja", type="build")
    depends_on("libjpeg-turbo", type=("build", "link"))
    depends_on("py-cloudpickle@3:", type=("build", "run"))
    depends_on("py-numpy@2:", type=("build", "run"))
    depends_on("py-pyyaml@6:", type=("build", "run"))
    # Not shtab, which only `flowos completion` asks for: the one of Spack is too old.
    depends_on("py-pyarrow@17:", type=("build", "run"), when="+parquet")
    depends_on("mpi", type="run", when="+mpi")
    depends_on("fio", type="run", when="+fio")

    import_modules = ("flowos", "flowos._native")
