from dataclasses import replace

import numpy as np
import pytest

from aprl.errors import ConfigError, PolicyError
from aprl.experiment import command_line
from aprl.imitation.demonstrations import load_demonstrations
from aprl.imitation.make_demonstrations import (
    DemonstrationConfig,
    demonstrations_experiment,
    make_demonstrations,
)
from aprl.policies import load_saved

SMALL = DemonstrationConfig(
    train_timesteps=256,
    batch_size=128,
    num_env=2,
    rl_args={"n_epochs": 1},
    episodes=3,
    horizon=30,
    progress=False,
)


def test_trains_an_expert_and_records_it(tmp_path):
    config = replace(SMALL, out=str(tmp_path / "d.npz"))
    seen = []
    path, returns = make_demonstrations(config, seen.append)
    recorded = load_demonstrations(path)
    assert [len(t) for t in recorded.trajectories] == [30] * 3
    assert returns.mean == np.mean([t.total_reward for t in recorded.trajectories])
    assert seen == [128]
    expert = load_saved(tmp_path / "d.expert")
    again, _ = make_demonstrations(
        replace(config, expert_path=str(tmp_path / "d.expert"), out=str(tmp_path / "e.npz"))
    )
    for a, b in zip(recorded.trajectories, load_demonstrations(again).trajectories, strict=True):
        np.testing.assert_array_equal(a.obs, b.obs)
    assert recorded.provenance["policy"] == {"type": "ppo", "path": str(tmp_path / "d.expert")}
    assert expert.network.obs_std.std() > 0  # its normaliser came along


def test_other_kinds_of_expert(tmp_path):
    config = replace(SMALL, out=str(tmp_path / "d.npz"), expert_type="constant", expert_path="1")
    path, _ = make_demonstrations(config)
    assert all((t.actions == 1).all() for t in load_demonstrations(path).trajectories)
    with pytest.raises(PolicyError, match="nowhere"):
        make_demonstrations(replace(config, expert_type="ppo", expert_path="nowhere"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out": "d.pkl"}, r"\.npz file, got d\.pkl"),
        ({"env_name": "CartPole-v99"}, "CartPole"),
        ({"episodes": 0}, "episodes must be"),
        ({"horizon": 0}, "horizon must be"),
        ({"learning_rate": 1.5}, "learning_rate must be"),
    ],
)
def test_what_cannot_work(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        make_demonstrations(replace(SMALL, **changes))


def test_command(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    observers = list(demonstrations_experiment.observers)
    try:
        with pytest.raises(SystemExit) as end:
            argv = ["make", "with", "episodes=2", "horizon=20", "expert_type=random"]
            command_line(demonstrations_experiment, "data/demonstrations", argv)
    finally:
        demonstrations_experiment.observers[:] = observers
    assert end.value.code == 0
    assert "data/demonstrations/CartPole-v1.npz: mean return" in capfd.readouterr().out
    assert len(load_demonstrations("data/demonstrations/CartPole-v1.npz").trajectories) == 2
