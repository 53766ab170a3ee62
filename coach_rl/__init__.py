"""A preset-driven experiment engine for reinforcement learning."""
