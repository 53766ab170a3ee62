"""Learning from pictures: convolutions in a torso, and stacks whose frames are kept once.

Both are found by `extension.toml` where an observation is a picture, or a memory has a
`frame_stack`. May import architectures, memories and core. Start with `convolutions`, then
`frame_ring`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.images.convolutions import image_encoder
    from coach_rl.extensions.images.frame_ring import FrameRing
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["FrameRing", "image_encoder"]
