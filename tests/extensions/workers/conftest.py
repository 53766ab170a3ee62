"""Makes the helpers of agents' tests importable by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "agents"))
