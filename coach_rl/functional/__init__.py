"""Pure tensor functions: distributions, returns and advantages, losses, the optimiser's step.

No module, no parameter object, no logging, no in-place writes; imports torch only. Start with
`policy_gradient` (PPO's losses), whose inputs come from `advantages` and `distributions`.
"""
