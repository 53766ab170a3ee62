"""Missions of MiniGrid as bags of words."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from coach_rl.core.errors import EnvironmentFault
from coach_rl.core.records import FloatArray

WORDS = (
    *("a", "after", "and", "at", "avoid", "ball", "behind", "blue", "box", "door", "end", "fetch"),
    *("find", "from", "front", "get", "go", "goal", "green", "grey", "hallway", "in", "key"),
    *("lava", "left", "matching", "must", "near", "next", "object", "of", "on", "open", "opening"),
    *("pick", "purple", "put", "reach", "red", "right", "room", "rooms", "square", "the", "then"),
    *("to", "traverse", "unlock", "up", "use", "yellow", "you", "your"),
)
"""All words of the missions of MiniGrid and BabyAI."""


class BagOfWords:
    """Missions as numbers of words; their order is lost.

    Args:
        words: The vocabulary.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._places = {word: place for place, word in enumerate(words)}
        self._known: dict[str, FloatArray] = {}

    def __call__(self, mission: str) -> FloatArray:
        """The number of times that a mission has each word of the vocabulary, float32 [V].

        Raises:
            EnvironmentFault: It has other words.
        """
        counts = self._known.get(mission)
        if counts is None:
            counts = np.zeros(len(self._places), np.float32)
            for word in mission.lower().replace(",", " ").split():
                if word not in self._places:
                    raise EnvironmentFault(
                        f"the mission {mission!r} has the word '{word}', which is not one of the "
                        f"{len(self._places)} words of MiniGridParameters.words; add it there"
                    )
                counts[self._places[word]] += 1
            self._known[mission] = counts
        return counts


def may_vary(env: Any) -> bool:
    """Return whether the missions of a level may differ between episodes; of BabyAI's all may."""
    missions = env.observation_space["mission"]
    if type(missions).__name__ == "BabyAIMissionSpace":
        return True
    return math.prod(len(choices) for choices in missions.ordered_placeholders or ()) > 1
