"""Best policy per victim: selection, keys, cache, lookup, command line."""

import json
import logging
import multiprocessing
import os
import shutil
import subprocess
import sys
import time

import pytest

import aprl
from aprl import highest_win_rate
from aprl.errors import ConfigError, RunError
from aprl.highest_win_rate import CACHE_FILE, best_policies, main
from aprl.stats import WinRate, wilson_interval
from tests.run_trees import SUMO, YSNP, edit_config, make_run


def cache(tree):
    return json.loads((tree / CACHE_FILE).read_text())


@pytest.fixture
def reads(monkeypatch):
    """Names of the runs that are read in full, as they are read."""
    names = []

    def reading(path):
        names.append(path.name)
        return real(path)

    real = highest_win_rate.read_run
    monkeypatch.setattr(highest_win_rate, "read_run", reading)
    return names


# Selection


def test_best_run_of_each_game_and_victim(tmp_path):
    make_run(tmp_path / "ysnp/a", [(40, 50, 10)])
    make_run(tmp_path / "ysnp/b", [(60, 30, 10)])
    make_run(tmp_path / "ysnp/other_victim", [(10, 90, 0)], embedded=[("zoo", "2")])
    make_run(tmp_path / "sumo/a", [(40, 50, 10)], env_name=SUMO, embed_index=0)
    make_run(tmp_path / "sumo/b", [(60, 30, 10)], env_name=SUMO, embed_index=0)
    best = best_policies(tmp_path)
    assert best.policies == {
        YSNP: {"1": {"1": "ysnp/b/final_model", "2": "ysnp/other_victim/final_model"}},
        SUMO: {"0": {"1": "sumo/a/final_model"}},
    }
    assert best.winrates == {YSNP: {"1": {"1": 0.6, "2": 0.1}}, SUMO: {"0": {"1": 0.5}}}
    assert best.counts[SUMO]["0"]["1"] == {"wins": 50, "losses": 40, "ties": 10, "games": 100}
    assert best.counts[YSNP]["1"]["1"] == {"wins": 60, "losses": 30, "ties": 10, "games": 100}
    assert best.intervals[YSNP]["1"]["1"] == list(wilson_interval(60, 100))
    assert best.skipped == []


def test_ties_are_games_not_won(tmp_path):
    make_run(tmp_path / "draws", [(45, 5, 50)])
    make_run(tmp_path / "decides", [(46, 54, 0)])
    assert best_policies(tmp_path).winrates[YSNP]["1"]["1"] == 0.46


def test_rollouts_weigh_by_their_games(tmp_path):
    make_run(tmp_path / "lucky", [(10, 90, 0), (1, 0, 0)])  # mean of the points is 55 %
    make_run(tmp_path / "steady", [(20, 80, 0), (0, 1, 0)])  # mean of the points is 10 %
    best = best_policies(tmp_path)
    assert best.policies[YSNP]["1"]["1"] == "steady/final_model"
    assert best.winrates[YSNP]["1"]["1"] == 20 / 101


def test_window_counts_games_of_the_newest_rollouts(tmp_path):
    make_run(tmp_path / "run", [(0, 400, 0), (5, 5, 0), (8, 2, 0)])

    def found(window):
        return best_policies(tmp_path, episode_window=window).lookup(YSNP, 1, "1").win_rate

    assert found(10) == WinRate(8, 10)
    assert found(11) == WinRate(13, 20)
    assert found(1000) == WinRate(13, 420)
    assert best_policies(tmp_path).lookup(YSNP, 1, "1").win_rate == WinRate(13, 420)


def test_run_that_never_wins_appears(tmp_path):
    make_run(tmp_path / "run", [(0, 10, 5)])
    best = best_policies(tmp_path).lookup(YSNP, 1, "1")
    assert best.win_rate == WinRate(0, 15)
    assert (best.losses, best.ties) == (10, 5)


@pytest.mark.parametrize(
    "order", [("a", "b", "c", "d"), ("d", "c", "b", "a"), ("c", "a", "d", "b")]
)
def test_equal_rates_are_decided_by_games_then_steps_then_path(tmp_path, order):
    sizes = {order[0]: (10, 5), order[1]: (100, 1)}  # half the games are won: games, steps
    sizes |= {order[2]: (100, 9), order[3]: (100, 9)}
    for name, (half, steps) in sizes.items():
        make_run(tmp_path / name, [(half, half, 0)], steps=steps)
    names = []
    for _ in range(4):
        names.append(best_policies(tmp_path).policies[YSNP]["1"]["1"].split("/")[0])
        shutil.rmtree(tmp_path / names[-1])
        if len(names) == 3:
            break
    assert names == [*sorted(order[2:]), order[1]]


# Keys


def test_hardened_victim_is_indexed_by_the_policy_it_came_from(tmp_path):
    adversary = {"embedded": ["aa"], "loaded": "bb"}
    make_run(
        tmp_path / "ysnp",
        [(3, 7, 0)],
        embed_index=0,
        embedded=[("ppo", "long/path")],
        load_path="1",
        fingerprints=adversary,
    )
    make_run(
        tmp_path / "sumo",
        [(7, 3, 0)],
        env_name=SUMO,
        embed_index=1,
        embedded=[("ppo", "long/path")],
        load_path="2",
    )
    best = best_policies(tmp_path)
    assert best.policies == {
        YSNP: {"0": {"1": "ysnp/final_model"}},
        SUMO: {"1": {"2": "sumo/final_model"}},
    }
    assert best.lookup(YSNP, 0, "1").fingerprint == "bb"
    assert best.lookup(YSNP, 0, "1").win_rate == WinRate(7, 10)


def test_adversary_that_continues_another_is_indexed_by_its_victim(tmp_path):
    known = {"embedded": ["aa"], "loaded": "bb"}
    make_run(tmp_path / "run", [(7, 3, 0)], load_path="earlier/adversary", fingerprints=known)
    best = best_policies(tmp_path)
    assert best.policies == {YSNP: {"1": {"1": "run/final_model"}}}
    assert best.fingerprints == {YSNP: {"1": {"1": "aa"}}}


def test_victim_trained_from_scratch_is_indexed_by_its_opponent(tmp_path):
    make_run(tmp_path / "run", [(7, 3, 0)], embed_index=0, embedded=[("ppo", "adversary")])
    assert best_policies(tmp_path).policies == {YSNP: {"0": {"adversary": "run/final_model"}}}


def test_several_embedded_policies_make_one_key(tmp_path):
    make_run(
        tmp_path / "run",
        [(7, 3, 0)],
        embedded=[("zoo", "1"), ("ppo", "x/y")],
        fingerprints={"embedded": ["aa", "bb"], "loaded": None},
    )
    assert best_policies(tmp_path).lookup(YSNP, 1, "1+x/y").fingerprint == "aa+bb"


def test_policies_without_files_are_not_taken_for_zoo_tags(tmp_path):
    make_run(tmp_path / "zoo", [(1, 9, 0)])
    make_run(tmp_path / "random", [(9, 1, 0)], embedded=[("random", "1")])
    make_run(tmp_path / "zero", [(8, 2, 0)], embedded=[("zero", "1")])
    make_run(tmp_path / "constant", [(7, 3, 0)], embedded=[("constant", "1")])
    assert best_policies(tmp_path).policies[YSNP]["1"] == {
        "1": "zoo/final_model",
        "random": "random/final_model",
        "zero": "zero/final_model",
        "constant:1": "constant/final_model",
    }


@pytest.mark.parametrize(
    "fingerprints",
    [{"embedded": [None]}, {"embedded": []}, {"embedded": ["a", "b"]}, {"embedded": 3}, {}, [1]],
)
def test_unknown_fingerprint_is_null(tmp_path, fingerprints):
    make_run(tmp_path / "run", [(7, 3, 0)])
    edit_config(tmp_path / "run", fingerprints=fingerprints)
    assert best_policies(tmp_path).fingerprints == {YSNP: {"1": {"1": None}}}


# Runs that are skipped


def test_skipped_runs_are_listed_with_reasons(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    make_run(tmp_path / "good", [(1, 9, 0)])
    make_run(tmp_path / "running", [(9, 1, 0)], status="running", finished=False)
    make_run(tmp_path / "no_status", [(9, 1, 0)], status=None, finished=False)
    make_run(tmp_path / "no_games", [None, (0, 0, 0)])
    make_run(tmp_path / "alone", [(9, 1, 0)], embedded=[])
    make_run(tmp_path / "bad_env", [(9, 1, 0)], env_name="a/b/c d")
    bad_config = make_run(tmp_path / "bad_config", [(9, 1, 0)])
    (bad_config / "config.json").write_text("{")
    bad_log = make_run(tmp_path / "bad_log", [(9, 1, 0)])
    (bad_log / "rl/progress.csv").write_text("loss\n1\n")
    bad_status = make_run(tmp_path / "bad_status", [(9, 1, 0)], finished=False)
    (bad_status / "status.json").write_text("")
    for _ in range(2):  # computed, then from the cache
        caplog.clear()
        best = best_policies(tmp_path)
        assert best.policies == {YSNP: {"1": {"1": "good/final_model"}}}
        skipped = dict(best.skipped)
        assert list(skipped) == sorted(skipped)
        assert skipped["running"] == "unfinished: status running"
        assert skipped["no_status"] == "unfinished: no status file"
        assert skipped["no_games"] == "unusable: no finished game was logged"
        assert skipped["alone"] == "unusable: nothing is embedded"
        assert skipped["bad_env"].startswith("damaged: 'a/b/c d' is no environment id")
        assert skipped["bad_config"].startswith("damaged: config.json is not readable JSON")
        assert skipped["bad_log"].startswith("damaged: rl/progress.csv has no game columns")
        assert skipped["bad_status"].startswith("damaged: status.json is not readable JSON")
        assert len(skipped) == 8
        warned = {r.args[1] for r in caplog.records if r.levelno == logging.WARNING}
        assert warned == {"bad_env", "bad_config", "bad_log", "bad_status"}
        assert sum("skipped run" in message for message in caplog.messages) == 8
    assert str(tmp_path) not in (tmp_path / CACHE_FILE).read_text()


def test_run_with_a_line_cut_short_counts_without_it(tmp_path):
    run = make_run(tmp_path / "run", [(60, 40, 0)])
    with open(run / "rl/progress.csv", "a") as file:
        file.write("100,100,0")
    assert best_policies(tmp_path).lookup(YSNP, 1, "1").win_rate == WinRate(60, 100)


def test_no_finished_runs(tmp_path):
    with pytest.raises(RunError, match=r"no finished runs under .*there is no run in it"):
        best_policies(tmp_path)
    for i in range(6):
        make_run(tmp_path / f"run{i}", [(1, 1, 1)], status="failed", finished=False)
    bad = make_run(tmp_path / "bad", [(1, 1, 1)])
    (bad / "config.json").write_text("{")
    with pytest.raises(RunError, match=r"\(1 damaged, 6 unfinished\): .*status failed") as error:
        best_policies(tmp_path)
    assert "bad is damaged: config.json" in str(error.value)
    assert str(error.value).endswith("; 2 more")
    assert not (tmp_path / CACHE_FILE).exists()


def test_missing_directory(tmp_path):
    with pytest.raises(RunError, match="nowhere does not exist"):
        best_policies(tmp_path / "nowhere")


@pytest.mark.parametrize("window", [0, -5, 1.5, True])
def test_bad_window(tmp_path, window):
    with pytest.raises(ConfigError, match=f"at least 1, got {window}"):
        best_policies(tmp_path, episode_window=window)


@pytest.mark.parametrize("everything", [False, True])
def test_run_deleted_while_it_is_read(tmp_path, monkeypatch, everything):
    make_run(tmp_path / "good", [(1, 9, 0)])
    victim = make_run(tmp_path / "going", [(9, 1, 0)])
    real = highest_win_rate.run_stamp

    def stamp_then_delete(run):
        value = real(run)
        if run == victim:
            shutil.rmtree(victim if everything else victim / "rl")
        return value

    monkeypatch.setattr(highest_win_rate, "run_stamp", stamp_then_delete)
    best = best_policies(tmp_path)
    assert best.policies == {YSNP: {"1": {"1": "good/final_model"}}}
    assert [name for name, _ in best.skipped] == ["going"]


def test_run_deleted_before_it_is_stamped(tmp_path, monkeypatch):
    make_run(tmp_path / "good", [(1, 9, 0)])
    make_run(tmp_path / "gone", [(9, 1, 0)])
    real = highest_win_rate.find_runs

    def find_then_delete(root):
        runs = real(root)
        shutil.rmtree(tmp_path / "gone")
        return runs

    monkeypatch.setattr(highest_win_rate, "find_runs", find_then_delete)
    assert best_policies(tmp_path).policies == {YSNP: {"1": {"1": "good/final_model"}}}


# The cached file


def test_file_format(tmp_path):
    make_run(tmp_path / "x/run", [(3, 1, 0)], fingerprints={"embedded": ["abc"], "loaded": None})
    make_run(tmp_path / "x/open", [(1, 3, 0)], status="running", finished=False)
    best_policies(tmp_path, episode_window=7)
    text = (tmp_path / CACHE_FILE).read_text()
    document = json.loads(text)
    stamp = document["computed_from"]["x/run"].pop("stamp")
    assert len(document.pop("digest")) == 64
    assert document == {
        "policies": {YSNP: {"1": {"1": "x/run/final_model"}}},
        "winrates": {YSNP: {"1": {"1": 0.75}}},
        "counts": {YSNP: {"1": {"1": {"wins": 3, "losses": 1, "ties": 0, "games": 4}}}},
        "intervals": {YSNP: {"1": {"1": list(wilson_interval(3, 4))}}},
        "fingerprints": {YSNP: {"1": {"1": "abc"}}},
        "format": 2,
        "tool_version": aprl.__version__,
        "episode_window": 7,
        "computed_from": {
            "x/run": {},
            "x/open": {
                "stamp": "unfinished: status running",
                "skipped": "unfinished: status running",
            },
        },
    }
    assert len(stamp) == 64
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"


def test_cache_is_used_as_long_as_nothing_changes(tmp_path, reads):
    tree = tmp_path / "tree"
    for i in range(3):
        make_run(tree / f"run{i}", [(i, 9, 0)])
    first = best_policies(tree)
    assert sorted(reads) == ["run0", "run1", "run2"]
    inode = (tree / CACHE_FILE).stat().st_ino
    for path in tree.rglob("*"):
        os.utime(path, (1, 1))  # as a git checkout does
    assert best_policies(tree) == first
    shutil.copytree(tree, tmp_path / "copy")
    assert best_policies(tmp_path / "copy").policies == first.policies
    assert len(reads) == 3
    assert (tree / CACHE_FILE).stat().st_ino == inode
    best_policies(tree, refresh=True)
    assert len(reads) == 6


def test_unfinished_runs_that_go_on_leave_the_cache_fresh(tmp_path, reads):
    make_run(tmp_path / "done", [(1, 9, 0)])
    run = make_run(tmp_path / "open", [(1, 9, 0)], status="running", finished=False)
    best_policies(tmp_path)
    (run / "rl/progress.csv").write_text("more\n")
    (run / "status.json").write_text('{"status": "running", "num_timesteps": 5000}')
    best_policies(tmp_path)
    assert reads == ["done"]


def change_add(tree):
    make_run(tree / "new", [(10, 0, 0)])
    return "new/final_model"


def change_remove(tree):
    shutil.rmtree(tree / "b")
    return "a/final_model"


def change_rename(tree):
    (tree / "b").rename(tree / "c")
    return "c/final_model"


def change_log(tree):
    path = tree / "a/rl/progress.csv"
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"10,4,6,0", b"10,9,0,1"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    return "a/final_model"


def change_config(tree):
    edit_config(tree / "b", embed_paths=["2"])
    return "a/final_model"


def change_weights(tree):
    (tree / "a/final_model/policy.safetensors").write_bytes(b"retrained")
    return "b/final_model"


def change_finish(tree):
    shutil.copytree(tree / "a/final_model", tree / "open/final_model")
    return "open/final_model"


@pytest.mark.parametrize(
    "change",
    [
        change_add,
        change_remove,
        change_rename,
        change_log,
        change_config,
        change_weights,
        change_finish,
    ],
)
def test_any_change_of_the_runs_is_noticed(tmp_path, reads, change):
    make_run(tmp_path / "a", [(4, 6, 0)])
    make_run(tmp_path / "b", [(5, 5, 0)])
    make_run(tmp_path / "open", [(99, 1, 0)], status="running", finished=False)
    assert best_policies(tmp_path).policies[YSNP]["1"]["1"] == "b/final_model"
    reads.clear()
    expected = change(tmp_path)
    assert best_policies(tmp_path).policies[YSNP]["1"]["1"] == expected
    assert reads
    assert cache(tmp_path)["policies"][YSNP]["1"]["1"] == expected


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("tool_version", "0.0.1"),
        ("episode_window", 50),
        ("format", 3),
        ("counts", {}),
        ("policies", [1]),
        ("winrates", None),
        ("computed_from", {"run": {}}),
        ("computed_from", 3),
    ],
)
def test_other_or_damaged_entries_are_computed_anew(tmp_path, reads, entry, value):
    make_run(tmp_path / "run", [(1, 9, 0)])
    best = best_policies(tmp_path)
    document = cache(tmp_path)
    (tmp_path / CACHE_FILE).write_text(json.dumps(document | {entry: value}))
    assert best_policies(tmp_path) == best
    assert cache(tmp_path) == document
    assert len(reads) == 2


@pytest.mark.parametrize("part", ["winrates", "intervals", "fingerprints", "counts"])
def test_entry_that_is_missing_in_one_part_is_computed_anew(tmp_path, reads, part):
    make_run(tmp_path / "run", [(1, 9, 0)])
    best = best_policies(tmp_path)
    document = cache(tmp_path)
    del document[part][YSNP]["1"]["1"]
    (tmp_path / CACHE_FILE).write_text(json.dumps(document))
    assert best_policies(tmp_path) == best
    assert len(reads) == 2


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('{"policies": {}, "winrates": {}}', "is not of format 2"),
        ("[]", "is not of format 2"),
        ('{"policies": {"multi', "is not readable JSON"),
        ("", "is not readable JSON"),
        ("[" * 100_000, "is not readable JSON"),
        ('{"format": 2, "tool_version": "VERSION", "episode_window": 1000}', "is damaged"),
    ],
)
def test_old_or_corrupt_file_is_overwritten_with_a_note(tmp_path, caplog, text, note):
    make_run(tmp_path / "run", [(9, 1, 0)])
    (tmp_path / CACHE_FILE).write_text(text.replace("VERSION", aprl.__version__))
    best = best_policies(tmp_path)
    assert best.winrates == {YSNP: {"1": {"1": 0.9}}}
    assert note in caplog.text and "computed anew" in caplog.text
    assert cache(tmp_path)["winrates"] == best.winrates


def test_result_that_cannot_be_written_is_still_returned(tmp_path, caplog):
    make_run(tmp_path / "run", [(9, 1, 0)])
    (tmp_path / CACHE_FILE).mkdir()  # stands for a directory that is not writable, even to root
    assert best_policies(tmp_path).winrates == {YSNP: {"1": {"1": 0.9}}}
    assert "the result is not cached" in caplog.text
    assert sorted(p.name for p in tmp_path.iterdir()) == [CACHE_FILE, "run"]


def refresh_often(tree, results):
    seen = {str(sorted(best_policies(tree, refresh=True).winrates.items())) for _ in range(15)}
    results.put(seen)


def test_processes_at_once_leave_a_whole_file(tmp_path):
    for i in range(5):
        make_run(tmp_path / f"run{i}", [(i, 10 - i, 0)], embedded=[("zoo", str(i))])
    expected = str(sorted(best_policies(tmp_path).winrates.items()))
    document = cache(tmp_path)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=refresh_often, args=(tmp_path, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    inodes = set()
    while any(worker.is_alive() for worker in workers):
        assert cache(tmp_path) == document
        inodes.add((tmp_path / CACHE_FILE).stat().st_ino)
        time.sleep(0.001)
    assert [results.get(timeout=10) for _ in workers] == [{expected}] * 2
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(inodes) > 1, "the file was not replaced while it was read"
    assert cache(tmp_path) == document
    assert len(list(tmp_path.iterdir())) == 6


def test_checking_a_large_tree_is_quick(tmp_path):
    first = make_run(tmp_path / "000", [(i % 7, 5, 1) for i in range(1200)], weights=bytes(100_000))
    for i in range(1, 500):
        shutil.copytree(first, tmp_path / f"{i:03d}", copy_function=os.link)
    best_policies(tmp_path)
    start = time.perf_counter()
    best_policies(tmp_path)
    assert time.perf_counter() - start < 2


# Lookup


def test_lookup_gives_an_absolute_path_wherever_the_tree_is(tmp_path, monkeypatch):
    tree = tmp_path / "tree"
    make_run(tree / "a/run", [(1, 9, 0)])
    best_policies(tree)
    tree.rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    best = best_policies("moved").lookup(YSNP, 1, "1")
    assert best.policy_dir == tmp_path / "moved/a/run/final_model"
    assert best.policy_dir.is_dir()
    assert (best.env_name, best.embed_index, best.path) == (YSNP, 1, "1")


def test_lookup_of_a_tree_that_is_one_run(tmp_path):
    run = make_run(tmp_path / "run", [(1, 9, 0)])
    assert best_policies(run).lookup(YSNP, 1, "1").policy_dir == run / "final_model"


def test_lookup_by_exact_key_then_place_then_fingerprint(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    victim = tmp_path / "victims/v/final_model"
    victim.mkdir(parents=True)
    (tmp_path / "link").symlink_to(victim)

    def run(name, wins, path, hash_):
        known = {"embedded": [hash_], "loaded": None}
        rollouts = [(wins, 10 - wins, 0)]
        make_run(tmp_path / "t" / name, rollouts, embedded=[("ppo", path)], fingerprints=known)

    run("relative", 5, "victims/v", "aa")
    run("absolute", 3, str(victim), "bb")
    run("elsewhere", 2, "/gone/v", "cc")
    best = best_policies("t")

    def found(*args):
        return best.lookup(YSNP, 1, *args).policy_dir.parent.name

    assert found(victim) == "absolute"
    assert found("victims/v") == "relative"
    assert found("victims/v/") == "relative"  # best of the two that are the same place
    assert found("link") == "relative"
    assert found("/other/v", "cc") == "elsewhere"
    assert found("/gone/v", "cc") == "elsewhere"
    assert not caplog.records
    assert found("/gone/v", "aa") == "elsewhere"
    assert "the policy at /gone/v has changed" in caplog.text


def test_lookup_of_what_is_not_there(tmp_path):
    known = {"embedded": ["aa"], "loaded": None}
    make_run(tmp_path / "run", [(1, 9, 0)], fingerprints=known)
    make_run(tmp_path / "other", [(1, 9, 0)], embedded=[("ppo", "x/y")])
    best = best_policies(tmp_path)
    for args in [(SUMO, 1, "1", "aa"), (YSNP, 0, "1", "aa"), (YSNP, 1, "7"), (YSNP, 1, "7", "bb")]:
        with pytest.raises(RunError) as error:
            best.lookup(*args)
        message = str(error.value)
        assert str(tmp_path) in message and f"{args[0]} with agent {args[1]}" in message
        assert f"played by {args[2]};" in message
        assert message.endswith(f"(game, index, path): {YSNP} 1 1, {YSNP} 1 x/y")


def test_frame(tmp_path):
    make_run(tmp_path / "b", [(8, 1, 1)], embedded=[("zoo", "2")])
    make_run(tmp_path / "a", [(5, 5, 0)])
    frame = best_policies(tmp_path).to_frame()
    low, high = wilson_interval(8, 10)
    assert " ".join(frame.columns) == (
        "env_name embed_index embed_path policy win_rate low high wins losses ties games"
    )
    assert frame.to_numpy().tolist()[1] == [
        *(YSNP, 1, "2", "b/final_model", 0.8),
        *(low, high, 8, 1, 1, 10),
    ]
    assert frame["embed_path"].tolist() == ["1", "2"]
    assert frame["games"].dtype.kind == frame["embed_index"].dtype.kind == "i"


# Command line


def test_command_prints_a_table_per_directory_and_skipped_runs(tmp_path, capsys, caplog):
    first, second = tmp_path / "first", tmp_path / "second"
    make_run(first / "with_a_long_name" / ("x" * 150), [(212, 188, 0)])
    make_run(second / "[red]run", [(3, 1, 1)], env_name=SUMO, embed_index=0)
    make_run(second / "open", [], status="interrupted", finished=False)
    bad = make_run(second / "bad", [])
    (bad / "config.json").write_text("{")
    assert main([str(first), str(second), "--episode-window", "4"]) == 0
    out = capsys.readouterr().out
    assert f"with_a_long_name/{'x' * 150}/final_model" in out
    assert "53.0 % [48.1, 57.8] (212/400)" in out
    assert "[red]run/final_model" in out
    assert "20.0 % [3.6, 62.4] (1/5)" in out
    assert "skipped open: unfinished: status interrupted" in out
    assert "skipped bad: damaged: config.json is not readable JSON" in out
    assert out.index(str(first)) < out.index(str(second))
    assert not caplog.records, "the table says it already"
    assert cache(first)["episode_window"] == 4


def test_command_refresh(tmp_path, reads):
    make_run(tmp_path / "run", [(1, 3, 1)])
    main([str(tmp_path)])
    main([str(tmp_path)])
    assert len(reads) == 1
    main([str(tmp_path), "--refresh"])
    assert len(reads) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "run directory nowhere does not exist"),
        ([".", "--episode-window", "x"], "argument --episode-window: invalid int value: 'x'"),
    ],
)
def test_command_errors_are_one_line(tmp_path, arguments, message):
    command = [sys.executable, "-m", "aprl.highest_win_rate", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1
