"""Why a plan is not run, and how whatever else goes wrong is told: nothing of it may stop a job."""


class Mismatch(Exception):
    """The job is not the one that the plan was made for, or this jax cannot run it: what was expected, what came, what
    to do."""


def in_words(error: BaseException) -> str:
    """One line."""
    said = " ".join(str(error).split())
    return said if isinstance(error, Mismatch) else f"{type(error).__name__}: {said[:400]}"
