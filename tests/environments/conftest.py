"""Makes `little_environments` importable by name, in worker processes as well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
