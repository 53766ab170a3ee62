"""Networks of the user's own: any torch module in the place of a torso.

May import architectures and core. Start with `user_module`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.own_modules.user_module import ModuleParameters, ModuleTorso
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["ModuleParameters", "ModuleTorso"]
