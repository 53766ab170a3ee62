"""Lets the tests of this folder import the programs that kill runs, and the golden runs."""

import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent.parent
sys.path[:0] = [str(TESTS / "faults"), str(TESTS / "golden")]
