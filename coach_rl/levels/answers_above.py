"""Answers of a level to the one above, whose decisions are over with its sub-episodes."""

from coach_rl.core.level_parts import Judgement
from coach_rl.core.records import NO_ANSWER, EnvResponse, IntArray, take
from coach_rl.levels.rows import LevelRows


def closed(sums: LevelRows, answer: EnvResponse, judged: Judgement, over: IntArray) -> EnvResponse:
    """Close the rows of the places `over` in an answer: the answer to the level above.

    Args:
        sums: The rows of the level, in which rewards and durations are added up.
        answer: What the level below answered.
        judged: The judgement of that.
        over: Places in it whose sub-episodes are over, [E].
    """
    if not len(over):
        return NO_ANSWER
    rows = answer.rows[over]
    sums.open[rows] = False
    totals = sums.totals or {}
    added_up = {**sums.agent_rewards, **sums.agent_ends, **totals}
    return EnvResponse(
        rows=rows,
        observation=take(answer.observation, over),
        first_observation=take(answer.first_observation, over),
        reward=sums.reward[rows],
        terminated=answer.terminated[over],
        truncated=answer.truncated[over],
        end=judged.end[over],
        duration=sums.duration[rows],
        info={
            key: added_up[key][rows] if key in added_up else values[over]
            for key, values in (answer.info | totals).items()
        },
    )
