"""Match-ups on Ray: who plays whom, what is written, what is not played again."""

import json

import pytest

from aprl.activations import load_activations
from aprl.configs.multi_score import NAMED_CONFIGS
from aprl.errors import AprlError, ConfigError, RunError
from aprl.multi.matchups import agents_of, cross
from aprl.multi.play import pairings, play, read_scores
from aprl.multi.score import score_matchups
from aprl.multi.score_config import MatchupsConfig
from tests.multi.test_grids import hardened_tree

RPS = "aprl/RockPaperScissors-v0"
LINE = "aprl/CrowdedLinePair-v0"


def config(tmp_path, **entries):
    values = {
        "save_path": str(tmp_path / "scores.json"),
        "root_dir": str(tmp_path),
        "envs": [RPS],
        "victims": ["constant:0", "constant:1"],
        "opponents": ["constant:2", "fixed"],
        "episodes": 40,
        "score": {"num_env": 8},
        "num_cpus": 2,
        "progress": False,
    }
    return MatchupsConfig(**values | entries)


@pytest.fixture(scope="module", autouse=True)
def ray_once():
    from aprl.multi.cluster import connected

    with connected(None, 2):
        yield


def test_everybody_plays_everybody_and_nothing_twice(tmp_path):
    frame = score_matchups(config(tmp_path))
    assert len(frame) == 2 * 3
    assert (frame.games == 40).all()
    # Rock loses to paper, paper to scissors: 0, 1 and 2 in this order beat the one before.
    against = frame[frame.opponent_path == "2"].set_index("victim_path")
    assert against.loc["1", "opponent_wins"] == 40
    assert against.loc["0", "victim_wins"] == 40
    path = tmp_path / "scores.json"
    before = path.stat().st_mtime_ns
    again = score_matchups(config(tmp_path))
    assert again.equals(frame.reset_index(drop=True)) or len(again) == len(frame)
    assert path.stat().st_mtime_ns == before
    entries = read_scores(path)
    assert {"win0", "win1", "ties", "games", "interval0", "rate1"} <= set(entries[0]["v"])
    assert len(entries[0]["k"]) == 5


def test_only_what_is_missing_is_played(tmp_path):
    score_matchups(config(tmp_path, victims=["constant:0"]))
    path = tmp_path / "scores.json"
    kept = json.loads(path.read_text())[0]
    kept["v"]["unstable"] = 77  # to recognise it
    path.write_text(json.dumps([kept]))
    score_matchups(config(tmp_path))
    entries = read_scores(path)
    assert len(entries) == 6
    assert [e["v"]["unstable"] for e in entries].count(77) == 1
    score_matchups(config(tmp_path, episodes=48))  # other settings: all anew
    assert [e["v"]["games"] for e in read_scores(path)] == [48] * 6


def test_early_stopping_plays_fewer_games_and_keeps_the_interval(tmp_path):
    frame = score_matchups(
        config(
            tmp_path,
            victims=["constant:0"],
            opponents=["random:none", "constant:2"],
            episodes=1000,
            ci_width=0.2,
        )
    )
    sure = frame[frame.opponent_type == "constant"].iloc[0]
    assert sure.games == 100
    assert (frame.games < 1000).all()
    assert ((frame.opponent_high - frame.opponent_low) <= 0.2).all()


def test_every_option_takes_effect(tmp_path):
    base = {"envs": [LINE], "victims": ["constant:0.5"], "opponents": ["constant:-0.5"]}
    found = pairings(config(tmp_path, noise="victim_actions", noise_samples=3, **base))
    assert [p.config.noisy_agent_index for p in found] == [0, 0, 0]
    sizes = [p.config.noisy_agent_magnitude for p in found]
    assert sizes == [p.size for p in found] and len(set(sizes)) == 3
    still = play(pairings(config(tmp_path, **base))[0])
    noisy = play(found[0])
    assert noisy != still
    assert [len(p.key) for p in found] == [6, 6, 6]


@pytest.mark.parametrize("masking_type", ["zeros", "initialization", "debug"])
def test_masks_reach_the_games(tmp_path, masking_type):
    made = pairings(
        config(
            tmp_path,
            envs=["multicomp/YouShallNotPassHumans-v1"],
            victims=["zero:none"],
            opponents=["zero:none"],
            mask="victim",
            masking_type=masking_type,
        )
    )
    assert made[0].config.mask_agent_index == 1
    assert made[0].config.mask_agent_masking_type == masking_type
    assert made[0].config.mask(0).masking_type == masking_type


def test_a_match_up_that_fails_does_not_take_the_others_with_it(tmp_path, monkeypatch):
    made = config(tmp_path, opponents=["constant:2", "ppo:gone"])
    with pytest.raises(AprlError, match="gone"):
        score_matchups(made)
    # A policy that vanishes after the checks.
    monkeypatch.setattr("aprl.score_agent.ScoreConfig.check", lambda self: None)
    with pytest.raises(RunError, match="2 of 4 match-ups failed"):
        score_matchups(made)
    assert len(read_scores(tmp_path / "scores.json")) == 2


ANTS = {
    "envs": ["multicomp/RunToGoalAnts-v1"],
    "victims": ["ppo:data/victims/RunToGoalAnts-v1"],
    "opponents": ["fixed"],
}


def test_activations_of_every_match_up_are_kept(tmp_path):
    named = NAMED_CONFIGS["save_activations"]
    limits = {"timesteps": 400, "num_env": 2, "max_episode_steps": 30}
    folder = tmp_path / "trajectories"
    values = ANTS | named | {"activations": str(folder), "score": named["score"] | limits}
    frame = score_matchups(config(tmp_path, **values))
    files = sorted(folder.iterdir())
    assert len(files) == len(frame) == 2
    for file, opponent in zip(files, ("random", "zero"), strict=True):
        found = load_activations(file)
        assert found.provenance["opponent"]["type"] == opponent
        assert set(found.values) == {"ff_policy", "ff_value"}
        assert 300 < found.lengths.sum() <= 400
    before = files[0].stat().st_mtime_ns
    score_matchups(config(tmp_path, **values))
    assert files[0].stat().st_mtime_ns == before


def test_videos_of_match_ups_do_not_replace_each_other(tmp_path):
    params = {"width": 64, "height": 48}
    values = ANTS | {"score": {"videos": True, "video_params": params}, "mask": "victim"}
    values |= {"noise": "observations", "noise_samples": 2}
    folders = {p.config.video_options()[0] for p in pairings(config(tmp_path, **values))}
    assert len(folders) == 4
    assert all(folder.parent == tmp_path / "videos" for folder in folders)


def adversaries(tmp_path):
    """Finished runs against every published victim of the four games."""
    from aprl.multi.grids import GOOD_GAMES, zoo_tags

    for game in GOOD_GAMES:
        env_name = f"multicomp/{game}-v1"
        root = hardened_tree(tmp_path / game, env_name, zoo_tags(game))
        if game == "YouShallNotPassHumans":  # the victim is agent 1 there
            for path in root.rglob("config.json"):
                record = json.loads(path.read_text())
                record["embed_index"] = 1 - record["embed_index"]
                path.write_text(json.dumps(record))


def test_named_rounds_have_as_many_pairings_as_published(tmp_path):
    adversaries(tmp_path)
    tree = tmp_path / "all"
    tree.mkdir()
    for game in tmp_path.glob("*/adversary"):
        (tree / game.parent.name).symlink_to(game)
    values = NAMED_CONFIGS["normal"] | {"adversaries": str(tree)}
    found = MatchupsConfig(**values).matchups()
    counts = {}
    for matchup in found:
        counts[matchup.env_name] = counts.get(matchup.env_name, 0) + 1
    assert len(found) == 92
    assert sorted(counts.values()) == [4, 24, 24, 40]


def test_defenses_have_18_pairings(tmp_path):
    adversaries(tmp_path)
    ysnp = tmp_path / "YouShallNotPassHumans"
    for run in (ysnp / "hardened").rglob("config.json"):
        record = json.loads(run.read_text())
        run.write_text(json.dumps(record))
    hardened, adversary = f"json:{ysnp}/hardened", f"json:{ysnp}/adversary"
    env = ["multicomp/YouShallNotPassHumans-v1"]
    victims = ["zoo", hardened, f"ppo:{ysnp}/other"]
    opponents = ["zoo", "fixed", adversary, "ppo:retrained_single", "ppo:retrained_dual"]
    assert len(cross(victims, opponents, env, "")) == 18
    assert len(NAMED_CONFIGS["defenses"]["victims"]) == 3
    assert len(NAMED_CONFIGS["defenses"]["opponents"]) == 5


def test_a_set_that_has_nobody_is_warned_of(tmp_path, caplog):
    hardened_tree(tmp_path, "multicomp/KickAndDefend-v1", ["1"])
    tree = str(tmp_path / "adversary")
    assert agents_of(f"adversary:{tree}", "multicomp/SumoAnts-v1", 1, "") == []
    assert "has nobody for agent 1 of multicomp/SumoAnts-v1" in caplog.text
    assert len(agents_of(f"json:{tree}", "multicomp/KickAndDefend-v1", 1, "")) == 1
    cached = f"json:{tree}/highest_win_policies_and_rates.json"
    [(kind, path)] = agents_of(cached, "multicomp/KickAndDefend-v1", 1, "")
    assert kind == "ppo" and path.endswith("final_model")


@pytest.mark.parametrize(
    "entries, complaint",
    [
        ({"victims": []}, "victims is empty"),
        ({"opponents": []}, "opponents is empty"),
        ({"victims": ["zoos"]}, "unknown set of agents 'zoos'"),
        ({"envs": ["multicomp/Chess-v0"]}, "Chess"),
        ({"ci_width": 2}, "ci_width"),
        ({"mask": "opponent"}, "opponent"),
        ({"noise": "observations"}, "needs mask"),
        ({"noise_params": [1]}, "noise_params"),
        ({"save_path": "x.csv"}, "json"),
        ({"score": {"seed": 1}}, "chosen by the match-ups"),
        ({"score": {"sed": 1}}, "sed"),
        ({"episodes": 0}, "episodes"),
        ({"score": {"record": "a.npz"}}, "chosen by the match-ups"),
        ({"score": {"videos": True}, "ci_width": 0.1}, "ci_width plays as many"),
        ({"activations": "x", "ci_width": 0.1}, "ci_width plays as many"),
        ({"activations": "x"}, "type constant has no activations"),
    ],
)
def test_bad_rounds_are_refused(tmp_path, entries, complaint):
    with pytest.raises(AprlError, match=complaint):
        pairings(config(tmp_path, **entries))


def test_a_missing_tree_is_named(tmp_path):
    with pytest.raises(RunError, match="nowhere"):
        pairings(config(tmp_path, opponents=[f"adversary:{tmp_path}/nowhere"]))


def test_config_error_is_the_users():
    with pytest.raises(ConfigError, match="victimes"):
        MatchupsConfig.from_dict({"victimes": []})
