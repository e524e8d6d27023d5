"""Reward nets of the `imitation` package: whole modules in pickles, which can run code."""

import importlib.util
import pickle
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from gymnasium import spaces

from aprl.errors import RewardError
from aprl.files import PathLike, sha256
from aprl.rewards.base import RewardNet
from aprl.rewards.encoding import decode

PACKAGE = "imitation"


class ImitationRewardNet(RewardNet):
    """A reward net of `imitation`, used through its `predict`; it is frozen.

    A file that this is saved to holds no copy of it, only its path and hash.
    """

    kind = "imitation"

    def __init__(self, module: Any, path: PathLike) -> None:
        super().__init__(module.observation_space, module.action_space)
        self.path = Path(path)
        self._module = [module]  # in a list, so that PyTorch does not count it as a part of this

    @torch.no_grad()
    def forward(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """See `RewardNet.forward`."""
        states, actions = self.observation_space, self.action_space
        columns = [
            decode(space, column).detach().numpy().astype(space.dtype)
            for space, column in ((states, state), (actions, action), (states, next_state))
        ]
        rewards = self._module[0].predict(*columns, terminated.detach().numpy().astype(bool))
        return torch.as_tensor(np.asarray(rewards, np.float64))

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        return {
            "kind": self.kind,
            "path": str(self.path.absolute()),
            "sha256": sha256(self.path),
        }

    @classmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
    ) -> Self:
        """See `RewardNet.from_architecture`.

        Raises:
            RewardError: the file has moved or changed.
        """
        path = Path(architecture["path"])
        if not path.is_file() or sha256(path) != architecture["sha256"]:
            raise RewardError(f"the reward net refers to {path}, which has moved or changed")
        return cls.load(path)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a pickled module, with a warning that this can run code.

        Raises:
            RewardError: `imitation` is not installed, or the file holds something else.
        """
        if importlib.util.find_spec(PACKAGE) is None:
            raise RewardError(
                f"{path} is a pickled module, not a reward net of aprl; reading one needs the "
                f"package {PACKAGE!r}, which is not installed"
            )
        warnings.warn(
            f"{path} is a pickled module, which can run code when it is loaded; load only files "
            "that you trust",
            UserWarning,
            stacklevel=3,
        )
        try:
            # On the real device even inside a block that builds modules without memory.
            with torch.device("cpu"):
                module = torch.load(path, map_location="cpu", weights_only=False)
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError, ImportError) as error:
            raise RewardError(f"{path} cannot be read: {error}") from None
        except AttributeError as error:  # a class that this version of the package lacks
            raise RewardError(f"{path} needs another version of {PACKAGE}: {error}") from None
        needed = ("predict", "observation_space", "action_space")
        if not all(hasattr(module, name) for name in needed):
            raise RewardError(f"{path} holds a {type(module).__name__}, expected a reward net")
        return cls(module.eval(), path)
