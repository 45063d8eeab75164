"""Writing what was found: HLO, schedules, costs, traces, reports, bundles."""
