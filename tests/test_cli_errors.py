"""Bad input at the command line: one line that names it, exit code 1, nothing run, nothing lost."""

import pickle

import pytest

from aprl import score_agent, train
from aprl.experiment import command_line
from aprl.policies import import_zoo


@pytest.fixture
def fails(tmp_path, capfd, monkeypatch):
    """Run a command in a folder of its own; return its single line of complaint."""
    monkeypatch.chdir(tmp_path)

    def run(experiment, *arguments):
        default = str(tmp_path / "out")
        observers = list(experiment.observers)
        try:
            with pytest.raises(SystemExit) as end:
                command_line(experiment, default, ["prog", "with", *arguments])
        finally:
            experiment.observers[:] = observers
        err = capfd.readouterr().err
        assert end.value.code == 1, err
        lines = err.strip().splitlines()
        assert len(lines) == 1, err
        assert lines[0].startswith("error: ")
        return lines[0]

    return run


TRAIN, SCORE = train.train_experiment, score_agent.score_experiment
ANTS = "env_name=multicomp/RunToGoalAnts-v1"
RPS = "env_name=aprl/RockPaperScissors-v0"


class Bomb:
    def __reduce__(self):
        return (exec, ("print('the code in the pickle ran')",))


@pytest.mark.parametrize("experiment", [TRAIN, SCORE], ids=["train", "score"])
def test_unknown_env_id_names_near_matches(fails, experiment):
    line = fails(experiment, "env_name=multicomp/YouShallNotPasHumans-v1")
    assert "YouShallNotPasHumans" in line and "multicomp/YouShallNotPassHumans-v1" in line


def test_unknown_policy_type(fails):
    assert "'zooo'" in fails(TRAIN, RPS, "embed_type=zooo", "embed_path=1")
    assert "'zooo'" in fails(SCORE, RPS, "agent_a_type=zooo", "agent_b_type=zero")


def test_missing_policy(fails):
    assert "no_such_dir" in fails(TRAIN, RPS, "embed_type=ppo", "embed_path=no_such_dir")
    assert "no_such_dir" in fails(
        SCORE, RPS, "agent_a_type=ppo", "agent_a_path=no_such_dir", "agent_b_type=zero"
    )


def test_truncated_policy(fails, tmp_path, rps_policy):
    weights = rps_policy / "policy.safetensors"
    weights.write_bytes(weights.read_bytes()[:200])
    assert str(weights) in fails(TRAIN, RPS, "embed_type=ppo", f"embed_path={rps_policy}")


def test_pickle_with_code_is_refused_and_does_not_run(fails, tmp_path, capfd):
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(Bomb()))
    assert "model.pkl" in fails(TRAIN, RPS, "embed_type=ppo", f"embed_path={path}")
    zoo = tmp_path / "agent_zoo" / "YouShallNotPassHumans-v0"
    zoo.mkdir(parents=True)
    (zoo / "agent1_parameters-v1.pkl").write_bytes(pickle.dumps(Bomb()))
    import_zoo_error = pytest.raises(Exception, match=r"agent1_parameters-v1\.pkl")
    with import_zoo_error:
        import_zoo.import_zoo(tmp_path / "agent_zoo", tmp_path / "imported")
    captured = capfd.readouterr()
    assert "the code in the pickle ran" not in captured.out + captured.err


def test_absent_zoo_says_how_to_import(fails):
    line = fails(TRAIN, "env_name=multicomp/YouShallNotPassHumans-v1")
    assert "aprl.policies.import_zoo" in line and "data/agent_zoo" in line


def test_policy_of_the_wrong_game(fails, tmp_path, rps_policy):
    line = fails(TRAIN, ANTS, "embed_type=ppo", f"embed_path={rps_policy}", "num_env=2")
    assert "122" in line and "RunToGoalAnts" in line
    assert not list(tmp_path.glob("data/baselines/*")), "a run that never began was left behind"


def test_adversaries_without_finished_runs(fails, tmp_path, rps_policy):
    (tmp_path / "tree").mkdir()
    victim = ["load_policy.type=ppo", f"load_policy.path={rps_policy}"]
    line = fails(TRAIN, RPS, "adversaries=tree", *victim)
    assert "tree" in line and "no finished run" in line
    assert "nowhere" in fails(TRAIN, RPS, "adversaries=nowhere", *victim)
    assert "load_policy" in fails(TRAIN, RPS, "adversaries=tree")


def test_embed_paths_without_embed_types(fails):
    assert "embed_types" in fails(TRAIN, RPS, "embed_paths=['0']")


@pytest.mark.parametrize(
    "entry",
    [
        "num_env=0",
        "total_timesteps=-1",
        "batch_size=0",
        "seed=-1",
        "num_env=2.5",
        "eval_episodes=-1",
    ],
)
def test_counts_out_of_range(fails, entry):
    line = fails(TRAIN, RPS, "embed_type=zero", entry)
    assert entry.split("=")[0] in line and entry.split("=")[1] in line


@pytest.mark.parametrize("entry", ["episodes=0", "num_env=0", "timesteps=-3"])
def test_scoring_counts_out_of_range(fails, entry):
    line = fails(SCORE, RPS, "agent_a_type=zero", "agent_b_type=zero", entry)
    assert entry.split("=")[0] in line and entry.split("=")[1] in line


def test_output_directory_not_writable(fails, tmp_path):
    (tmp_path / "file").write_text("in the way")
    line = fails(TRAIN, RPS, "embed_type=zero", f"root_dir={tmp_path / 'file' / 'runs'}")
    assert "not writable" in line and "file" in line


def test_unknown_entry_names_near_ones(fails):
    assert "learning_rate" in fails(TRAIN, RPS, "lerning_rate=0.1")
    assert "noptepoch" in fails(TRAIN, RPS, "rl_args.noptepoch=3", "embed_type=zero")
    assert "num_env" in fails(SCORE, RPS, "num_envs=3")


@pytest.mark.parametrize(
    "entry",
    [
        *("env_name=None", "env_name=5", "load_policy=5", "normal_opponent=None"),
        *("rl_args=3", "rl_args.n_epochs=0", "rl_args.gamma=x", "rew_shape_params=3"),
        *("embed_types=zoo", "normalize=maybe", "progress=1", "learning_rate=fast", "seed=1.5"),
    ],
)
def test_values_of_the_wrong_type(fails, entry):
    name = entry.split("=")[0].split(".")[-1]
    line = fails(TRAIN, RPS, "embed_type=zero", "embed_paths=None", entry)
    assert ("env id" if entry == "env_name=5" else name) in line


def test_unknown_named_config_names_near_ones(fails):
    line = fails(TRAIN, "finetune_defens")
    assert line.startswith("error: unknown named config 'finetune_defens'")
    assert "'finetune_defence'" in line and "'finetune_defense'" in line


def test_resume_of_nothing(fails):
    assert "nowhere" in fails(TRAIN, "resume=nowhere")
    assert "there is no run directory 5" in fails(TRAIN, "resume=5")
    assert "no unfinished run" in fails(TRAIN, "resume=True")
