"""Programs on several processes: what the tests start them with."""

from __future__ import annotations

import shutil
import sysconfig

import pytest

# Open MPI keeps each rank on a core of its own, even if somebody else computes there, and wants as many cores as ranks. Of
# MPICH none of these is known.
VARIABLES = {
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def mpiexec() -> str:
    """The mpiexec of the environment that the tests run in, or of the path; skips when there is none."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed: pip install 'dynet_lite[distributed]'")
    found = shutil.which("mpiexec", path=sysconfig.get_path("scripts")) or shutil.which("mpiexec")
    if not found:
        pytest.skip("there is no mpiexec: pip install 'dynet_lite[distributed]'")
    return found
