"""Lets the tests of this folder import the programs beside them, and the golden runs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "golden"))
