"""The medium point maze from stitch data: HIQL beside GCIQL, and then online beside from scratch.

coach maze_data stitch ./data/stitch.npz                          # the data, once
python -m benchmarks.studies.goals_from_data --hours 2            # every job in turn
python -m benchmarks.studies.goals_from_data --hours 2 HIQL_seed0 # one of them
python -m benchmarks.studies.goals_from_data --report             # the tables

Networks, batches, discount and learning rate are the same for both, and each level of HIQL makes as
many updates as GCIQL. A result, a file below `benchmarks/results/goals_from_data/`, has the success
of the last networks in each of OGBench's five tasks. A job whose file has the same parameters is
skipped.
"""
