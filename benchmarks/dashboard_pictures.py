r"""Pictures of the dashboard for docs/watching.md, of runs that are there.

    coach -p Mujoco_PPO --steps 100000 --histograms -cp "evaluation_interval=10000; clip=0.25"
    coach -p Pendulum_HAC --steps 60000 --histograms -dg --video_skip 8 \
        -cp "evaluation_interval=10000"
    python benchmarks/dashboard_pictures.py experiments/Mujoco_PPO docs/pictures \
        --pages charts settings texts histograms
    python benchmarks/dashboard_pictures.py experiments/Pendulum_HAC docs/pictures \
        --name two_levels --pages charts

Needs Chromium, which draws a page without a window.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

PAGES = {
    "charts": ("custom_scalars", "1700,1400"),
    "settings": ("hparams", "2200,420"),
    "texts": ("text", "1400,1250"),
    "histograms": ("histograms", "1400,900"),
    "videos": ("images", "1400,700"),
}
"""The page, and the width and height in pixels, of each picture."""
SECONDS, COLOURS = 60, 64


def main() -> None:
    """Start the dashboard, draw its pages, end it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", type=Path, help="a folder of runs")
    parser.add_argument("pictures", type=Path, help="where the pictures go")
    parser.add_argument("--name", default="dashboard", help="the beginning of their names")
    parser.add_argument("--pages", nargs="*", default=list(PAGES), choices=list(PAGES))
    given = parser.parse_args()
    browser = shutil.which("chromium") or sys.exit("chromium is not installed")
    coach = Path(sys.executable).with_name("coach")
    command = [coach, "dashboard", given.runs, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dashboard:
        assert dashboard.stdout is not None
        try:
            addresses = (re.search(r"http://\S+?/(?=#)", line) for line in dashboard.stdout)
            address = next(found[0] for found in addresses if found)
            for page in given.pages:
                path = given.pictures / f"{given.name}_{page}.png"
                draw(browser, f"{address}#{PAGES[page][0]}", path, size=PAGES[page][1])
                print(path, f"{path.stat().st_size / 1e3:.0f} kB")
        finally:
            dashboard.terminate()


def draw(browser: str, address: str, path: Path, *, size: str) -> None:
    """A picture of a page, with few colours."""
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                f"--window-size={size}",
                f"--timeout={SECONDS * 1000}",
                f"--virtual-time-budget={SECONDS * 1000}",
                f"--screenshot={path}",
                address,
            ],
            check=True,
            capture_output=True,
            timeout=10 * SECONDS,
        )
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    main()
