"""Writes coach_rl/__init__.pyi: what `coach_rl` offers, for type checkers and editors.

The names of the core stand in coach_rl/__init__.py, those of an extension in its table. Run it
after a change of either, or where an extension has been deleted.
"""

from collections import defaultdict
from pathlib import Path

import coach_rl
from coach_rl.configuration.extensions import public_names
from coach_rl.core.lazy_names import imports_for_type_checkers

PACKAGE = Path(coach_rl.__file__).parent
FILE = PACKAGE / "__init__.pyi"


def stub() -> str:
    """The text of the file."""
    core = imports_for_type_checkers((PACKAGE / "__init__.py").read_text())
    modules: dict[str, list[str]] = defaultdict(list)
    for name, (module, there) in {**core, **public_names()}.items():
        modules[module].append(f"{there} as {name}")
    lines = ['"""The public names; written by .ci/public_names.py."""', ""]
    for module in sorted(modules):
        lines.append(f"from {module} import (")
        lines += [f"    {name}," for name in sorted(modules[module], key=str.casefold)]
        lines.append(")")
    lines += ["", "__all__: list[str]", "__version__: str", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    FILE.write_text(stub())
