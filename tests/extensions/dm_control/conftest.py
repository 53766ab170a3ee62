"""Tests of the Control Suite are skipped where dm_control is missing."""

import importlib.util

import pytest

if importlib.util.find_spec("dm_control") is None:
    pytest.skip("dm_control is not installed; it comes with the extra", allow_module_level=True)
