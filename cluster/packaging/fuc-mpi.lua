-- A module file for Lmod: modulefiles/fuc-mpi/0.2.0.lua, of an installation in PREFIX by cluster/install.sh.
help("rmz-mpi and cpz-mpi: rm and cp of one tree by many machines")
whatis("Name: fuc-mpi")
whatis("Version: 0.2.0")
depends_on("openmpi")
local prefix = "PREFIX"
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
