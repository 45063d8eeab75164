"""Everything Lapstrake knows about HLO, machines and time; imports no Qt and nothing of `views` or `app`."""
