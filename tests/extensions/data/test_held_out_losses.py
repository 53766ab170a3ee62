"""Losses of held-out transitions: of which they are, and that they change nothing."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.data.files import read_data
from coach_rl.extensions.data.held_out import split_episodes
from coach_rl.extensions.testing.states import assert_same_state

DATA = "data:cartpole-expert"
SMALL = rl.TorsoParameters(middleware=(8,), activation="relu", orthogonal=False)
LEARNING = rl.LearningParameters(batch=64, learning_starts=1, report_every=10)
MEMORY = rl.ReplayMemoryParameters(capacity=20_000)
CLONING = rl.BCAgentParameters(
    policy=rl.PolicyParameters(torso=SMALL),
    learning=LEARNING,
    memory=MEMORY,
    update_mode="eager",
)
RECURRENT = replace(
    CLONING,
    policy=rl.PolicyParameters(torso=replace(SMALL, recurrence=rl.GRU(size=4))),
    memory=rl.ReplayMemoryParameters(
        capacity=20_000, draws=rl.SequenceParameters(length=1, burn_in=0)
    ),
)


def manager_of(agent=CLONING, *, held_out=0.3, callbacks=(), updates=20, **more):
    return rl.BatchGraphManager(
        rl.BatchGraphParameters(
            **{
                "data": DATA,
                "environment": rl.GymnasiumParameters(level="CartPole-v1"),
                "schedule": rl.batch_schedule(updates, every=10, episodes=1),
                **more,
            },
            held_out=held_out,
            agent=agent,
            callbacks=callbacks,
        )
    )


def run_of(manager):
    """The records of a run, and the state of its agent at the end."""
    with manager:
        records = list(manager.improve())
        return records, manager.graph.agents["main"].state_dict()


def test_loss_is_minus_the_log_likelihood_of_actions_that_are_held_out():
    manager = manager_of(callbacks=(rl.HeldOutLossParameters(batches=200),))
    with manager:
        (*_, note) = [each for each in manager.improve() if each.kind == "note"]
        agent = manager.graph.agents["main"]
        spaces = manager.graph.spaces
        recorded = read_data(DATA, observation_space=spaces.observation, action_space=spaces.action)
        _, numbers = split_episodes(len(recorded.begins), 0.3, 0)
        places = np.concatenate(
            [recorded.begins[each] + np.arange(recorded.lengths[each]) for each in numbers]
        )
        seen = torch.from_numpy(recorded.columns["/observations/observation"][places])
        with torch.no_grad():
            logits = agent.learner.network.module({"observation": seen})
        labels = torch.from_numpy(recorded.columns["/actions"][places]).long()
        every = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    assert note.level == "main"
    assert note.training_steps == 20
    error = 5 * every.std().item() / np.sqrt(200 * 64)
    assert note.scalars["held_out/cloning_loss"] == pytest.approx(every.mean().item(), abs=error)
    assert "held_out/entropy" in note.scalars


def test_loss_of_a_recurrent_policy_is_that_of_whole_episodes():
    """Its hidden states are those of the networks of the moment, at each evaluation."""
    agent = replace(RECURRENT, optimizer=rl.AdamParameters(learning_rate=0.05))
    measured = []
    with manager_of(agent, callbacks=(rl.HeldOutLossParameters(batches=100),)) as manager:
        for record in manager.improve():
            if record.kind != "note":
                continue
            agent = manager.graph.agents["main"]
            spaces = manager.graph.spaces
            recorded = read_data(
                DATA, observation_space=spaces.observation, action_space=spaces.action
            )
            _, numbers = split_episodes(len(recorded.begins), 0.3, 0)
            lengths = recorded.lengths[numbers]
            numbers = numbers[np.cumsum(lengths) - lengths < 100 * 64]
            every = torch.cat([losses_of(agent, recorded, number) for number in numbers])
            error = 5 * every.std().item() / np.sqrt(100 * 64)
            found = record.scalars["held_out/cloning_loss"]
            assert found == pytest.approx(every.mean().item(), abs=error)
            measured.append(found)
    assert len(measured) == 2
    assert measured[1] < measured[0] - error


def losses_of(agent, recorded, number):
    """Minus the log-likelihood of an episode's actions [T], a step at a time from a zero state."""
    torso, head = agent.learner.network.module.torso, agent.learner.network.module.head
    places = recorded.begins[number] + np.arange(recorded.lengths[number])
    seen = torch.from_numpy(recorded.columns["/observations/observation"][places])
    labels = torch.from_numpy(recorded.columns["/actions"][places]).long()
    state, losses = torch.zeros(1, 4), []
    with torch.no_grad():
        for step in range(len(places)):
            shown = {"observation": seen[step : step + 1], "hidden_state": state}
            features, state = torso.advance(shown)
            losses.append(torch.nn.functional.cross_entropy(head(features), labels[step, None]))
    return torch.stack(losses)


@pytest.mark.parametrize(
    "agent",
    [
        CLONING,
        replace(RECURRENT, normalise_observations=10.0),
        rl.DiscreteCQLAgentParameters(learning=LEARNING, memory=MEMORY, update_mode="eager"),
    ],
)
def test_measuring_changes_no_number_of_a_run(agent):
    plain, state = run_of(manager_of(agent))
    measured, again = run_of(manager_of(agent, callbacks=(rl.HeldOutLossParameters(batches=2),)))
    assert_same_state(again, state)
    assert sum(each.kind == "note" for each in measured) == 2
    rest = [each for each in measured if each.kind != "note"]
    assert [each.kind for each in rest] == [each.kind for each in plain]
    for one, two in zip(rest, plain, strict=True):
        losses = {name: value for name, value in one.scalars.items() if "time" not in name}
        assert losses == {name: two.scalars[name] for name in losses}


def test_noise_of_losses_is_that_of_training():
    """TD3's targets draw noise, which training continues as if there had been none."""
    agent = rl.TD3BCAgentParameters(
        actor=rl.ActorParameters(torso=SMALL),
        critic=rl.CriticParameters(torso=SMALL),
        learning=LEARNING,
        memory=MEMORY,
        update_mode="eager",
    )
    world = {"data": "data:hopper-expert", "environment": rl.MujocoParameters(level="hopper")}
    _, state = run_of(manager_of(agent, **world))
    callbacks = (rl.HeldOutLossParameters(batches=2),)
    records, again = run_of(manager_of(agent, callbacks=callbacks, **world))
    assert_same_state(again, state)
    (*_, note) = [each for each in records if each.kind == "note"]
    assert {"held_out/critic_loss", "held_out/actor_loss"} <= note.scalars.keys()


def test_losses_are_the_same_after_a_resume():
    """Nothing is saved: batches are the same each time."""
    callbacks = (rl.HeldOutLossParameters(batches=3),)
    first, state = run_of(manager_of(callbacks=callbacks))
    with manager_of(callbacks=callbacks) as manager:
        manager.create_graph()
        manager.graph.agents["main"].load_state_dict(state)
        (measure,) = manager._callbacks._callbacks.values()
        (*_, last) = [each for each in first if each.kind == "evaluation"]
        (note,) = measure(last, manager)
    (*_, before) = [each for each in first if each.kind == "note"]
    assert note.scalars == before.scalars


def test_each_level_of_a_hierarchy_has_losses():
    from coach_rl.presets.PointMaze_HIQL import Panel, graph_manager

    plain = graph_manager(Panel(updates=4, layers=(8,), evaluation_interval=4)).parameters
    experiment = replace(plain, held_out=0.2, callbacks=(rl.HeldOutLossParameters(batches=2),))
    with rl.HRLGraphManager(experiment) as manager:
        notes = [each for each in manager.improve() if each.kind == "note"]
    assert {each.level for each in notes} == {"top", "low"}
    (low,) = [each for each in notes if each.level == "low"]
    assert {"held_out/value_loss", "held_out/policy_loss"} <= low.scalars.keys()


def test_run_that_holds_nothing_out_is_refused():
    with (
        manager_of(held_out=0.0, callbacks=(rl.HeldOutLossParameters(),)) as manager,
        pytest.raises(ConfigurationError, match=r"give held_out, e\.g\."),
    ):
        manager.create_graph()


def test_agent_that_stores_more_is_refused():
    filters = rl.InputFilter(observation={"observation": (rl.ObservationNormalizationFilter(),)})
    agent = rl.BCAgentParameters(input_filter=filters, memory=MEMORY, learning=LEARNING)
    with (
        manager_of(agent, callbacks=(rl.HeldOutLossParameters(),)) as manager,
        pytest.raises(ConfigurationError, match="cannot measure losses of agent 'agent'"),
    ):
        manager.create_graph()
