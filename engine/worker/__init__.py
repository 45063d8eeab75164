"""Processes of their own for work that may abort, hang or hold the GIL: `call` waits for a result, `start` does not.

A function that a worker runs is named ``"module:function"`` and takes its progress as the keyword ``control``.
"""

from engine.worker.call import Call, Died, TimedOut
from engine.worker.pool import call, close, prepare, start

__all__ = ["Call", "Died", "TimedOut", "call", "close", "prepare", "start"]
