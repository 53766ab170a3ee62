"""`python -m coach_rl` is the `coach` command."""

import sys

from coach_rl.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
