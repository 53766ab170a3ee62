"""Everything is in pyproject.toml; this replaces links that a checkout or archive has lost.

coach_rl/environments, filters and presets are symbolic links to the folders beside coach_rl. Where
git or an archive could not make them, they are small text files, or missing.
"""

import shutil
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
for name in ("environments", "filters", "presets"):
    place = HERE / "coach_rl" / name
    if not place.is_dir():
        place.unlink(missing_ok=True)
        shutil.copytree(HERE / name, place)
setup()
