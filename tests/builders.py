"""Small experiments and agents; a test gives only what is special about its own."""

import weakref
from dataclasses import fields
from typing import Any

import coach_rl as rl

RELU = rl.TorsoParameters(middleware=(16,), activation="relu")
"""The torso of small actors and critics."""
CREATED: weakref.WeakSet[rl.GraphManager] = weakref.WeakSet()
"""What `created` has made; each test closes its own at its end, see `conftest.py`."""


def parted(given: dict[str, Any], kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is given without the fields of a parameter class, and those."""
    names = {each.name for each in fields(kind)} & given.keys()
    rest = {name: value for name, value in given.items() if name not in names}
    return rest, {name: given[name] for name in names}


def described(given: dict[str, Any]) -> dict[str, Any]:
    """Fields of a graph's parameters, with those of its schedule gathered in `schedule`.

    Unless they are given: a point mass, and evaluations of two episodes, but only by request.
    """
    own, schedule = parted(given, rl.ScheduleParameters)
    schedule = {"evaluation_interval": None, "evaluation_episodes": 2, **schedule}
    return {
        "environment": rl.PointMassParameters(),
        "schedule": rl.ScheduleParameters(**schedule),
        **own,
    }


def graph(*levels: rl.LevelParameters, **given: Any) -> rl.GraphParameters:
    """Parameters of levels, top first; fields of the graph and of its schedule may be given."""
    return rl.GraphParameters(levels=levels, **described(given))


def flat(agent: Any, environment: Any = None, **given: Any) -> rl.BasicGraphParameters:
    """Parameters of one level; fields of the graph and of its schedule may be given."""
    if environment is not None:
        given["environment"] = environment
    return rl.BasicGraphParameters(agent=agent, **described(given))


def created(params: rl.GraphParameters, seed: int = 0) -> rl.GraphManager:
    """The graph manager, with its graph built on the CPU."""
    is_flat = isinstance(params, rl.BasicGraphParameters)
    manager = (rl.BasicRLGraphManager if is_flat else rl.GraphManager)(params)
    manager.create_graph(rl.Runtime(seed=seed, device="cpu"))
    CREATED.add(manager)
    return manager


def agents_of(manager: rl.GraphManager) -> list[Any]:
    """The agents of the levels, top first."""
    return list(manager.graph.agents.values())


def ppo(rollout: int = 32, **given: Any) -> rl.PPOAgentParameters:
    """PPO with small batches; fields of the agent and of its algorithm may be given."""
    own, algorithm = parted(given, rl.PPOAlgorithmParameters)
    algorithm = {"rollout": rollout, "minibatch": 16, **algorithm}
    return rl.PPOAgentParameters(
        **{"algorithm": rl.PPOAlgorithmParameters(**algorithm), "update_mode": "eager", **own}
    )


def ddpg(kind: Any = rl.DDPGAgentParameters, *, torso: Any = RELU, **given: Any) -> Any:
    """DDPG, or another off-policy agent with an actor, that learns seldom and soon.

    Args:
        kind: The class of the parameters.
        torso: That of actor and critic.
        given: Fields of the agent and of its learning.
    """
    own, learning = parted(given, rl.LearningParameters)
    learning = {"batch": 8, "updates_per_step": 0.25, "learning_starts": 20, **learning}
    return kind(
        **{
            "learning": rl.LearningParameters(**learning),
            "memory": rl.ReplayMemoryParameters(capacity=2_000),
            "actor": rl.ActorParameters(torso=torso),
            "critic": rl.CriticParameters(torso=torso),
            "update_mode": "eager",
            **own,
        }
    )


def td3(**given: Any) -> Any:
    """TD3 that learns seldom and soon; see `ddpg`."""
    return ddpg(rl.TD3AgentParameters, **given)
