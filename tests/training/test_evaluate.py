"""What is printed after a defence."""

import io

from rich.console import Console

from aprl.scoring import Score
from aprl.training.config import TrainConfig
from aprl.training.evaluate import comparison_table, conclusions

CONFIG = TrainConfig(env_name="aprl/RockPaperScissors-v0", embed_index=1)


def score(theirs, ours, games=100):
    return Score((ours, theirs), games - ours - theirs, 0, 10.0)


BEFORE = {"adversary": score(60, 30), "normal opponent": score(10, 80)}
AFTER = {"adversary": score(20, 70), "normal opponent": score(12, 80), "zero": score(1, 99)}


def test_a_sentence_says_what_training_did():
    assert conclusions(CONFIG, BEFORE, AFTER) == [
        "adversary: its win rate fell from 60.0 % to 20.0 %.",
        "normal opponent: its win rate went from 10.0 % to 12.0 %; that may be chance.",
    ]
    assert conclusions(CONFIG, AFTER, BEFORE)[0].endswith("rose from 20.0 % to 60.0 %.")
    assert conclusions(CONFIG, {}, AFTER) == []


def test_the_table_names_its_columns_and_fits_in_100():
    out = io.StringIO()
    Console(file=out, width=100).print(comparison_table(CONFIG, BEFORE, AFTER))
    text = out.getvalue()
    assert "│ opponent        │ training │" in text.replace("┃", "│")
    assert "20.0 % [13.3, 28.9] (20/100)" in text and "10/100" in text
    assert text.count("before") == 2 and text.count("after") == 3
