"""Lets the tests of this folder import the programs beside them, of killed runs and golden runs."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parents[2]
for folder in (HERE, TESTS / "faults", TESTS / "golden"):
    sys.path.insert(0, str(folder))
