"""DDPG, TD3 and SAC on MuJoCo tasks, beside Tianshou's scores: a study of each preset.

    coach study run benchmarks/studies/off_policy_mujoco.py:sac --jobs 2
    coach study report benchmarks/studies/off_policy_mujoco.py:sac --write

Published are Tianshou's 10 seeds after 1M steps (examples/mujoco/benchmark of its repository). Its
step counts leave out the random ones at the start (25,000; SAC 10,000), these count them: 100,000
here is its 75,000 (SAC 90,000).
"""

from typing import Literal

from coach_rl import Published, Study, Variant

SOURCE = "Tianshou, 10 seeds"
MARKS = (*range(50_000, 300_001, 50_000), *range(400_000, 1_000_001, 100_000))
"""Environment steps of the curves."""
CURVES = {
    ("Mujoco_DDPG", "half_cheetah"): (
        (3126, 480), (5599, 676), (6727, 747), (7506, 939), (8232, 939), (9090, 765), (9658, 533),
        (10517, 633), (10918, 641), (11059, 584), (11361, 547), (11473, 639), (11530, 461),
    ),
    ("Mujoco_DDPG", "hopper"): (
        (351, 185), (719, 406), (819, 333), (1158, 775), (1496, 600), (1700, 746), (1618, 985),
        (1081, 452), (1419, 635), (1331, 903), (1661, 603), (1738, 832), (1908, 863),
    ),
    ("Mujoco_TD3", "half_cheetah"): (
        (2023, 524), (4715, 387), (5722, 352), (6488, 564), (6921, 511), (7461, 752), (8200, 750),
        (8737, 748), (9072, 755), (9500, 787), (9804, 793), (9915, 716), (10168, 772),
    ),
    ("Mujoco_TD3", "hopper"): (
        (227, 46), (336, 81), (719, 724), (845, 627), (1120, 743), (1505, 878), (2541, 829),
        (2670, 934), (3142, 641), (3259, 378), (3374, 204), (3355, 367), (3298, 460),
    ),
    ("Mujoco_SAC", "half_cheetah"): (
        (4327, 213), (6213, 437), (7199, 665), (7877, 763), (8708, 1032), (9150, 1051),
        (9794, 750), (10465, 784), (10909, 791), (11377, 843), (11382, 870), (11649, 905),
        (12139, 1049),
    ),
    ("Mujoco_SAC", "hopper"): (
        (1030, 794), (1766, 1036), (2720, 935), (2383, 1162), (3171, 657), (3165, 671),
        (3363, 316), (3290, 621), (3434, 223), (3496, 98), (3525, 55), (3538, 47), (3515, 36),
    ),
}  # fmt: skip
"""Mean and standard deviation over Tianshou's seeds at MARKS."""


def ddpg() -> Study:
    """DDPG."""
    return study_of(
        "Mujoco_DDPG",
        task("Mujoco_DDPG", "half_cheetah", 11719.0),
        task("Mujoco_DDPG", "hopper", 2197.0),
        task("Mujoco_DDPG", "inverted_pendulum", 1000.0, steps=25_000),
        task("Mujoco_DDPG", "reacher", -3.3, steps=50_000),
    )


def td3() -> Study:
    """TD3."""
    return study_of(
        "Mujoco_TD3",
        task("Mujoco_TD3", "half_cheetah", 10201.0),
        task("Mujoco_TD3", "hopper", 3472.0),
        task("Mujoco_TD3", "inverted_pendulum", 1000.0, steps=50_000),
        task("Mujoco_TD3", "reacher", -2.7, steps=50_000),
    )


def sac() -> Study:
    """SAC, on the larger tasks with bfloat16 products as well."""
    return study_of(
        "Mujoco_SAC",
        task("Mujoco_SAC", "half_cheetah", 12139.0),
        task("Mujoco_SAC", "half_cheetah", 12139.0, precision="medium"),
        task("Mujoco_SAC", "hopper", 3542.0),
        task("Mujoco_SAC", "hopper", 3542.0, precision="medium"),
        task("Mujoco_SAC", "inverted_pendulum", 1000.0, steps=25_000),
        task("Mujoco_SAC", "reacher", -2.6, steps=50_000),
    )


def study_of(preset: str, *variants: Variant) -> Study:
    """A study of one preset's tasks."""
    return Study(
        name=preset.lower(),
        question=f"How does {preset} score, and how do others?",
        variants=variants,
        seeds=(10, 11, 12),
        steps=1_000_000,
        device="cpu",
        threads=1,
        pages=("../results/off_policy_mujoco.md",),
    )


def task(
    preset: str,
    level: str,
    score: float,
    *,
    steps: int | None = None,
    precision: Literal["highest", "medium"] = "highest",
) -> Variant:
    """A preset on one task; the score is the published one after 1M steps."""
    curve = dict(zip(MARKS, CURVES.get((preset, level), ()), strict=False))
    return Variant(
        name=level if precision == "highest" else f"{level}, bfloat16",
        preset=preset,
        level=level,
        steps=steps,
        matmul_precision=precision,
        published=Published(score=score, source=SOURCE, curve=curve),
    )
