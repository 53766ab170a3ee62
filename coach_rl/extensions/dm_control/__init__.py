"""Tasks of the DeepMind Control Suite; their environment is `environments/dm_control`."""
