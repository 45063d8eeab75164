"""Timelines as columns, and questions about them: drawing index, critical path, statistics, differences."""
