"""Makes `replay_worlds` importable by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
