import pickle

import numpy as np
import pytest

from aprl.cli import run_cli
from aprl.errors import PolicyError
from aprl.files import sha256
from aprl.policies import ZOO_GAMES, load_saved, read_header
from aprl.policies.import_zoo import import_zoo, main
from aprl.policies.zoo import mlp_size


def write_zoo(root, *names, game="RunToGoalAnts", length=None):
    entry = ZOO_GAMES[game]
    folder = root / f"{game}-v0"
    folder.mkdir(parents=True, exist_ok=True)
    for i, name in enumerate(names):
        flat = np.full(length or mlp_size(entry.obs_dim, entry.act_dim), 0.01 * (i + 1), np.float32)
        (folder / name).write_bytes(pickle.dumps(flat, 2))
    return root


@pytest.fixture
def zoo(tmp_path):
    return write_zoo(tmp_path / "zoo", "agent1_parameters-v1.pkl", "agent2_parameters-v1.pkl")


def test_every_agent_is_imported_with_its_provenance(zoo, tmp_path):
    results = import_zoo(zoo, tmp_path / "out")
    assert [(r.game, r.agent_index, r.tag) for r in results] == [
        ("RunToGoalAnts", 0, 1),
        ("RunToGoalAnts", 1, 1),
    ]
    assert [r.directory for r in results] == [
        tmp_path / "out" / "RunToGoalAnts" / f"agent{i}-v1" for i in (0, 1)
    ]
    header = read_header(results[1].directory)
    assert header["kind"] == "zoo"
    assert header["architecture"]["observation_clip"] == 5.0
    provenance = header["provenance"]
    assert provenance["env_name"] == "multicomp/RunToGoalAnts-v0"
    assert provenance["agent_index"] == 1
    assert provenance["source_file"] == "RunToGoalAnts-v0/agent2_parameters-v1.pkl"
    assert provenance["source_sha256"] == sha256(results[1].source)
    log_std = [load_saved(r.directory).network.log_std.detach().numpy() for r in results]
    np.testing.assert_array_equal(log_std, np.float32([[0.01] * 8, [0.02] * 8]))
    assert load_saved(results[0].directory).action_space.high[0] == 1.0


def test_importing_twice_is_harmless(zoo, tmp_path):
    assert import_zoo(zoo, tmp_path / "out") == import_zoo(zoo, tmp_path / "out")


def test_recurrent_policies_are_imported(zoo, tmp_path):
    write_zoo(zoo, "agent_parameters-v1.pkl", game="SumoAnts", length=299943)
    result = import_zoo(zoo, tmp_path / "out")[-1]
    assert (result.game, result.agent_index) == ("SumoAnts", None)
    policy = load_saved(result.directory)
    assert policy.initial_state(3).shape == (3, 4, 128)


def test_versions_that_were_never_published_are_skipped_with_a_note(zoo, tmp_path):
    write_zoo(zoo, "agent_parameters-v9.pkl", game="SumoAnts")
    result = import_zoo(zoo, tmp_path / "out")[-1]
    assert result.directory is None
    assert "no zoo policy '9' for SumoAnts" in result.note


def test_other_files_are_left_alone(zoo, tmp_path):
    folder = zoo / "RunToGoalAnts-v0"
    (folder / "README").write_text("hello")
    (folder / "agent_parameters-v1.pkl").write_bytes(b"not one of this game's files")
    assert len(import_zoo(zoo, tmp_path / "out")) == 2


def test_wrong_length_names_the_file_and_both_lengths(tmp_path):
    zoo = write_zoo(tmp_path / "zoo", "agent1_parameters-v1.pkl", length=59039)
    with pytest.raises(PolicyError, match=r"agent1_.*24905 .*59039") as error:
        import_zoo(zoo, tmp_path / "out")
    assert str(error.value).count("agent1_parameters") == 1
    assert not (tmp_path / "out").exists()


def test_damaged_file_is_named_once(zoo, tmp_path):
    path = zoo / "RunToGoalAnts-v0" / "agent2_parameters-v1.pkl"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(PolicyError, match=r"agent2_parameters-v1\.pkl: truncated") as error:
        import_zoo(zoo, tmp_path / "out")
    assert str(error.value).count("agent2_parameters") == 1


def command(source, out):
    """Exit code of the command."""
    with pytest.raises(SystemExit) as end:
        run_cli(lambda: main([str(source), "--out", str(out)]))
    return end.value.code


def test_command_line_lists_what_it_did(zoo, tmp_path, capsys):
    write_zoo(zoo, "agent_parameters-v9.pkl", game="SumoHumans")
    assert command(zoo, tmp_path / "out") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["imported", "imported", "skipped", "2"]
    assert "agent2_parameters-v1.pkl" in lines[1]
    assert str(tmp_path / "out" / "RunToGoalAnts" / "agent1-v1") in lines[1]


@pytest.mark.parametrize("create", [False, True], ids=["absent", "empty"])
def test_command_line_fails_in_one_line_without_a_zoo(create, tmp_path, capsys):
    source = tmp_path / "zoo"
    if create:
        source.mkdir()
    assert command(source, tmp_path / "out") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert str(source) in captured.err
    assert captured.err.count("\n") == 1


def test_unwritable_destination_fails_in_one_line(zoo, tmp_path, capsys):
    (tmp_path / "out").write_text("a file is in the way")
    assert command(zoo, tmp_path / "out") == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_the_published_zoo(shared_dir, tmp_path):
    results = import_zoo(shared_dir / "agent_zoo", tmp_path / "out")
    assert len(results) == 19
    assert all(r.directory is not None for r in results)
    assert {r.game for r in results} == set(ZOO_GAMES)
    for result in results:
        recurrent = ZOO_GAMES[result.game].recurrent
        assert (load_saved(result.directory).initial_state(1) is not None) == recurrent
