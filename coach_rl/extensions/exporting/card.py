"""The card of a policy: README.md with the block of metadata that model hubs read."""

import json
import shlex

from coach_rl.configuration.strict_json import Json
from coach_rl.runs.folder import ONLY_POLICY
from coach_rl.runs.trained import score_text

CARD = "README.md"
"""Name of a card's file."""
_TEMPLATE = """---
library_name: coach_rl
tags:
- reinforcement-learning
- coach_rl
- {level}
model-index:
- name: {name}
  results:
  - task:
      type: reinforcement-learning
      name: reinforcement-learning
    dataset:
      name: {level}
      type: {level}
    metrics:
    - type: mean_reward
      value: {mean:.2f} +/- {std:.2f}
      name: mean_reward
      verified: false
---

# {title}

{film}A policy trained with coach_rl {version}. This folder holds its weights
(`checkpoints/*/tensors.safetensors`), the parameters that it was made from (`manifest.json`) and
this card; it lacks optimisers and replay memories.

| | |
| --- | --- |
| task | {shown_level} |
| trained for | {steps:,} environment steps, {updates:,} gradient updates, seed {seed} |
| score | {score}, greedy, seed {score_seed}; the interval is 95 % over episodes |
| command | `{command}` |
| commit of coach_rl | {commit} |
| observations | {observation} |
| actions | {action} |

## Use

With coach_rl installed:

    coach play FOLDER
    coach evaluate FOLDER --episodes {episodes} --seed {score_seed}
    coach fork FOLDER --as NAME --steps N

```python
import coach_rl

agent = coach_rl.load("FOLDER")
{acts}
```

`policy.zip`, where there is one, is the policy alone, for programs without torch. Load it by
`from coach_rl.extensions.exporting.coach_policy import Policy`, or by a copy of that file, which
reads it as data; the copy inside it is code of its author.

FOLDER is where this folder was downloaded to. A preset or environment that does not come
with coach_rl has to be importable there, and is named with `--trust MODULE`.
"""


def card(manifest: Json, *, acts: str, film: str | None = None) -> str:
    """The text of a card.

    Args:
        manifest: Of the policy.
        acts: Lines in which the agent acts.
        film: Name of a film's file beside it; None where there is none.
    """
    about = manifest[ONLY_POLICY]
    preset = manifest["preset"]
    level = manifest["level"]
    score = about["score"]
    name = manifest["name"] if preset is None else preset["name"]
    commit = "not known (an installed package)"
    checkout = manifest["git"]["coach_rl"]
    if checkout:
        commit = f"{checkout['commit']}{' with changes' if checkout['dirty'] else ''}"
    return _TEMPLATE.format(
        level=json.dumps(level),
        name=json.dumps(name),
        mean=score["reward_mean"],
        std=score["reward_std"],
        title=f"{name} on {level}",
        film=f"![an episode]({film})\n\n" if film else "",
        version=manifest["versions"]["coach-rl"],
        shown_level=level,
        steps=about["environment_steps"],
        updates=about["training_steps"],
        seed=manifest["task"]["seed"],
        score=score_text(score),
        score_seed=score["seed"],
        episodes=score["episodes"],
        command=shlex.join(manifest["command"]) or "(from a program)",
        commit=commit,
        acts=acts,
        observation=_space(manifest["spaces"]["observation"]),
        action=_space(manifest["spaces"]["action"]),
    )


def _space(space: Json) -> str:
    """A space in words: `Dict(observation: Box(17,))`."""
    kind = space["kind"]
    if kind == "Dict":
        parts = (f"{name}: {_space(part)}" for name, part in space["spaces"].items())
        return f"Dict({', '.join(parts)})"
    shape = space.get("shape", space.get("n", space.get("nvec", "")))
    return f"{kind}({', '.join(map(str, shape)) if isinstance(shape, list) else shape})"
