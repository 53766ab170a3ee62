"""`coach bot_data`: a data set of a level of BabyAI from its bot."""

from pathlib import Path

from coach_rl.cli.parser import Flag, Given

BOT_DATA = (
    Flag("LEVEL", "a level of BabyAI, such as BabyAI-GoToLocal"),
    Flag("FILE", "the file that is written; it ends with .npz", Path),
    Flag("--episodes N", "number of episodes (default: 1000)", int),
    Flag("--random SHARE", "share of random actions (default: 0)", float),
    Flag("--mission KIND", "words or hidden (default: words)", choices=("words", "hidden")),
    Flag("--seed SEED", "random seed (default: 0)", int),
)


def write_bot_data(given: Given) -> int:
    """Make a data set of a level and write it; the exit code."""
    from coach_rl.environments.minigrid.parameters import MiniGridParameters
    from coach_rl.extensions.bot_data.bot_episodes import BotDataParameters, bot_data
    from coach_rl.extensions.data.files import write_file

    chosen = {"episodes": given.episodes, "random_share": given.random}
    params = BotDataParameters(
        environment=MiniGridParameters(level=given.level, mission=given.mission or "words"),
        **{name: value for name, value in chosen.items() if value is not None},
    )
    made = bot_data(params, given.seed or 0)
    path = write_file(made.recorded, given.file, made.spaces)
    recorded = made.recorded
    print(f"{path}: {len(recorded):,} transitions of {len(recorded.begins):,} episodes")
    if made.failed:
        print(f"{made.failed:,} further episodes, in which the bot failed, are left out")
    return 0
