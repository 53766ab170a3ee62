"""DrQ: random shifts of sampled pictures, and an encoder that the critics alone train.

May import what agents may. `random_shift` is a part of any replay memory; `encoder` a torso for
pictures, whose convolutions an actor borrows from its critics.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.drq.encoder import PictureTorsoParameters
    from coach_rl.extensions.drq.random_shift import RandomShiftParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["PictureTorsoParameters", "RandomShiftParameters"]
