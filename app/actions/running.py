"""What the menu Run has: verifying, runs, compilers, trials and jobs."""

from __future__ import annotations

from app.actions.action import Action, opened

RUN: tuple[Action, ...] = (
    Action(
        "verify",
        "Verify the numbers",
        "Run",
        lambda e: e.verify(),
        ("Ctrl+Shift+V",),
        enabled=opened,
        tip="Run the active variant and the module as loaded on CPU devices, and compare what they compute",
    ),
    Action(
        "show-runs",
        "Run on devices …",
        "Run",
        lambda e: e.show_runs(),
        ("Ctrl+Shift+R",),
        tip="Time, verify and profile variants on the CPU or on attached devices",
    ),
    Action(
        "compile",
        "Compile with the production compiler …",
        "Run",
        lambda e: e.show_compiler(),
        enabled=opened,
        tip="The TPU or GPU compiler's own schedule of the module and of the active plan, without a device",
    ),
    Action(
        "try-all",
        "Try all combinations",
        "Run",
        lambda e: e.try_all(),
        ("Ctrl+T",),
        enabled=opened,
        tip="Schedulers × budgets × unroll × ring, listed in the tab Compare",
    ),
    Action("rerun", "Run again", "Run", lambda e: e.rerun(), ("Ctrl+R",), enabled=opened),
    Action("cancel-jobs", "Cancel all jobs", "Run", lambda e: e.job_list.cancel_all(), ("Ctrl+.",)),
    Action("show-log", "Show the log", "Run", lambda e: e.window.show_pane("Log")),
)
