"""Tests of Atari games are skipped where ale-py is missing."""

import pytest

pytest.importorskip("ale_py", reason="ale_py is not installed; it comes with the extra atari")
