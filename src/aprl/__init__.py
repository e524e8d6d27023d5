"""Train, measure, defend against and explain adversarial policies in multi-agent games."""

__version__ = "0.3.0"
