"""Marks of tests that need an optional part of the installation."""

from __future__ import annotations

import importlib.util

import pytest

needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="the extra tpu is not installed")
