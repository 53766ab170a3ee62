import numpy as np

from coach_rl.core.records import infos_with_same_keys


def test_infos_that_only_some_rows_report_have_a_mask():
    both, some, none = (
        {"speed": np.array([1.0, 2.0]), "bonus": np.array([4, 5])},
        {"speed": np.array([3.0]), "bonus": np.array([0]), "_bonus": np.array([False])},
        {"speed": np.array([6.0])},
    )
    infos = infos_with_same_keys([both, some, none], [2, 1, 1])
    joined = {key: np.concatenate([info[key] for info in infos]).tolist() for key in infos[0]}
    assert joined == {
        "speed": [1.0, 2.0, 3.0, 6.0],
        "bonus": [4, 5, 0, 0],
        "_bonus": [True, True, False, False],
    }
