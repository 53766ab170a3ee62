"""An environment of two agents that shows numbers in another dtype than that of their space."""

from pettingzoo import ParallelEnv

from tests.environments.casting_environments import Shows


class ShowsAgents(ParallelEnv):
    """The same for two agents, of which the second shows the number."""

    def __init__(self, **kwargs):
        self.metadata, self.possible_agents = {"name": "shows"}, ["cat", "dog"]
        self.own = {name: Shows(**kwargs) for name in self.possible_agents}
        self.own["cat"].number = self.own["cat"].middle

    def observation_space(self, agent):
        return self.own[agent].observation_space

    def action_space(self, agent):
        return self.own[agent].action_space

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        return {name: env.reset()[0] for name, env in self.own.items()}, {"cat": {}, "dog": {}}

    def step(self, actions):
        answers = {name: env.step(0) for name, env in self.own.items()}
        return tuple({name: each[part] for name, each in answers.items()} for part in range(5))
