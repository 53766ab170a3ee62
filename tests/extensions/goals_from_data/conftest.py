"""Makes the plain programs of agents importable, which import each other by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "agents"))
