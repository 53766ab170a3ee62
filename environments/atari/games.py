"""Atari games by name, with the scores of random play and of people."""

from typing import NamedTuple


class ReferenceScores(NamedTuple):
    """Mean returns of a game, between which its scores are normalised."""

    random: float
    """Return of uniformly random actions."""
    human: float
    """Return of a professional tester."""

    def normalised(self, score: float) -> float:
        """The human-normalised score: 0 for random play, 1 for the tester."""
        return (score - self.random) / (self.human - self.random)


GAMES = {
    "alien": ReferenceScores(227.8, 7127.7),
    "amidar": ReferenceScores(5.8, 1719.5),
    "assault": ReferenceScores(222.4, 742.0),
    "asterix": ReferenceScores(210.0, 8503.3),
    "asteroids": ReferenceScores(719.1, 47388.7),
    "atlantis": ReferenceScores(12850.0, 29028.1),
    "bank_heist": ReferenceScores(14.2, 753.1),
    "battle_zone": ReferenceScores(2360.0, 37187.5),
    "beam_rider": ReferenceScores(363.9, 16926.5),
    "berzerk": ReferenceScores(123.7, 2630.4),
    "bowling": ReferenceScores(23.1, 160.7),
    "boxing": ReferenceScores(0.1, 12.1),
    "breakout": ReferenceScores(1.7, 30.5),
    "centipede": ReferenceScores(2090.9, 12017.0),
    "chopper_command": ReferenceScores(811.0, 7387.8),
    "crazy_climber": ReferenceScores(10780.5, 35829.4),
    "defender": ReferenceScores(2874.5, 18688.9),
    "demon_attack": ReferenceScores(152.1, 1971.0),
    "double_dunk": ReferenceScores(-18.6, -16.4),
    "enduro": ReferenceScores(0.0, 860.5),
    "fishing_derby": ReferenceScores(-91.7, -38.7),
    "freeway": ReferenceScores(0.0, 29.6),
    "frostbite": ReferenceScores(65.2, 4334.7),
    "gopher": ReferenceScores(257.6, 2412.5),
    "gravitar": ReferenceScores(173.0, 3351.4),
    "hero": ReferenceScores(1027.0, 30826.4),
    "ice_hockey": ReferenceScores(-11.2, 0.9),
    "jamesbond": ReferenceScores(29.0, 302.8),
    "kangaroo": ReferenceScores(52.0, 3035.0),
    "krull": ReferenceScores(1598.0, 2665.5),
    "kung_fu_master": ReferenceScores(258.5, 22736.3),
    "montezuma_revenge": ReferenceScores(0.0, 4753.3),
    "ms_pacman": ReferenceScores(307.3, 6951.6),
    "name_this_game": ReferenceScores(2292.3, 8049.0),
    "phoenix": ReferenceScores(761.4, 7242.6),
    "pitfall": ReferenceScores(-229.4, 6463.7),
    "pong": ReferenceScores(-20.7, 14.6),
    "private_eye": ReferenceScores(24.9, 69571.3),
    "qbert": ReferenceScores(163.9, 13455.0),
    "riverraid": ReferenceScores(1338.5, 17118.0),
    "road_runner": ReferenceScores(11.5, 7845.0),
    "robotank": ReferenceScores(2.2, 11.9),
    "seaquest": ReferenceScores(68.4, 42054.7),
    "skiing": ReferenceScores(-17098.1, -4336.9),
    "solaris": ReferenceScores(1236.3, 12326.7),
    "space_invaders": ReferenceScores(148.0, 1668.7),
    "star_gunner": ReferenceScores(664.0, 10250.0),
    "surround": ReferenceScores(-10.0, 6.5),
    "tennis": ReferenceScores(-23.8, -8.3),
    "time_pilot": ReferenceScores(3568.0, 5229.2),
    "tutankham": ReferenceScores(11.4, 167.6),
    "up_n_down": ReferenceScores(533.4, 11693.2),
    "venture": ReferenceScores(0.0, 1187.5),
    "video_pinball": ReferenceScores(16256.9, 17667.9),
    "wizard_of_wor": ReferenceScores(563.5, 4756.5),
    "yars_revenge": ReferenceScores(3092.9, 54576.9),
    "zaxxon": ReferenceScores(32.5, 9173.3),
}
"""The 57 games of the usual set, with the scores of Wang et al. 2016 (arXiv:1511.06581), table 2:
episodes of up to 108,000 frames that begin with up to 30 no-op actions."""
