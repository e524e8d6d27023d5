import pytest

from aprl.envs.names import canonical_game, victim_index
from aprl.errors import ConfigError


@pytest.mark.parametrize(
    ("env_name", "game"),
    [
        ("multicomp/SumoHumansAutoContact-v1", "SumoHumans"),
        ("multicomp/SumoAntsAutoContact-v0", "SumoAnts"),
        ("multicomp/YouShallNotPassHumans-v0", "YouShallNotPassHumans"),
        ("multicomp/YouShallNotPassHumans-v12", "YouShallNotPassHumans"),
        ("multicomp/KickAndDefend", "KickAndDefend"),
        ("RunToGoalAnts-v0", "RunToGoalAnts"),
        ("SumoHumans", "SumoHumans"),
        ("aprl/RockPaperScissors-v0", "RockPaperScissors"),
    ],
)
def test_canonical_game_drops_namespace_version_and_variant(env_name, game):
    assert canonical_game(env_name) == game


@pytest.mark.parametrize("bad", ["", "multicomp/", "a/b/C-v0", "Sumo Humans-v0", "Sumo-v0-v1"])
def test_malformed_id_is_named(bad):
    with pytest.raises(ConfigError, match="no environment id") as error:
        canonical_game(bad)
    assert repr(bad) in str(error.value)


def test_victim_is_the_runner_of_you_shall_not_pass_and_agent_0_elsewhere():
    assert victim_index("multicomp/YouShallNotPassHumans-v1") == 1
    assert victim_index("multicomp/YouShallNotPassHumans-v0") == 1
    assert victim_index("multicomp/KickAndDefend-v0") == 0
    assert victim_index("multicomp/SumoHumansAutoContact-v0") == 0
