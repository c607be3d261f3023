"""A Spack recipe: put this directory into a repository as packages/fuc_mpi, and write the address of your copy."""

from spack.package import *


class FucMpi(Package):
    """rm and cp of one tree by many machines: rmz-mpi and cpz-mpi."""

    homepage = "https://example.org/fuc"
    git = "https://example.org/fuc.git"

    license("Apache-2.0")

    version("master", branch="master")

    depends_on("mpi")
    depends_on("rust@1.88:", type="build")
    # Only its libclang is used, to read the headers of MPI.
    depends_on("llvm+clang", type="build")

    def install(self, spec, prefix):
        env["LIBCLANG_PATH"] = spec["llvm"].prefix.lib
        env["MPICC"] = spec["mpi"].mpicc
        Executable("./cluster/install.sh")(prefix)
