"""Run a plan made with Lapstrake inside a JAX job: it needs the folder `lapstrake_runtime` beside it, and jax.

    import sys
    sys.path.insert(0, "bundle")        # the folder, or the .zip, that `lapstrake tune` wrote
    import lapstrake_job

    plan = lapstrake_job.load("bundle")
    step = plan.wrap(step)              # a function from jax.jit
    ...
    print(plan.explain())               # after the first call: what of the plan runs

The wrapped step is called as before: same arguments, pytrees, shardings, donation. At its first call everything is
compared with what the plan was made for; whatever differs, the job runs its own function, unchanged, and one warning
says why (`strict=True` raises instead). In a job of several processes all of them run the plan or none does. A plan is
a whole compiled program: under a trace (an outer jit, grad, vmap, scan, eval_shape) the original runs. Plans that
change nothing but the order of a module that its compiler had scheduled are not wrapped: `load("bundle").install()`,
before the step is first called.
"""

from lapstrake_runtime.bundle import Bundle  # type: ignore[import-not-found]  # beside this file in a bundle
from lapstrake_runtime.mismatch import Mismatch  # type: ignore[import-not-found]  # likewise
from lapstrake_runtime.plan import Plan  # type: ignore[import-not-found]  # likewise

__all__ = ["Mismatch", "Plan", "load"]


def load(path: str) -> Plan:
    """The plan in a folder or .zip. Nothing is read before a wrapped step's first call, or `install`."""
    return Plan(Bundle(path))
