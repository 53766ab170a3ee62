"""Makes the helpers of the rooms that groups are built on importable by name."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, *(HERE.parents[1] / room for room in ("agents", "environments", "levels"))):
    sys.path.insert(0, str(folder))
