"""Configuration: from the name of a preset to a graph manager, and parameters as text and JSON.

May import core and graph_managers. Start with `presets`, which finds preset files, and
`preset_file`, which loads them; `overrides` changes parameters by path, `parameters_json` writes
and reads them, `trust` decides which code may be executed, `file_writing` never writes through a
link.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.configuration.overrides import apply_overrides, parse_overrides
    from coach_rl.configuration.preset_file import PanelArgument, Preset, load_preset
    from coach_rl.configuration.presets import (
        PresetReference,
        describe_presets,
        find_preset,
        shipped_presets,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "PanelArgument", "Preset", "PresetReference", "apply_overrides", "describe_presets",
    "find_preset", "load_preset", "parse_overrides", "shipped_presets",
]  # fmt: skip
