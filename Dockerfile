# The main job in a container, on the CPU:
#
#   docker build -t aprl .
#   docker run --rm -v aprl-runs:/home/aprl/runs aprl
#   docker run --rm -v aprl-runs:/home/aprl/runs aprl with finetune_defence seed=1 root_dir=/home/aprl/runs
#
# Other commands: docker run --rm --entrypoint python aprl -m aprl.score_agent ...
FROM python:3.11-slim

# git: Sacred records the commit of what it runs. EGL and Mesa: video without a display.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git libegl1 libgl1 libgl1-mesa-dri \
    && rm -rf /var/lib/apt/lists/*

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore \
    PYTHONUNBUFFERED=1 \
    MUJOCO_GL=egl

# Fallback where this index cannot be reached: delete this step. The next one then takes torch from
# pip's default index, which on Linux brings the CUDA libraries too (gigabytes).
RUN pip install --no-deps --index-url https://download.pytorch.org/whl/cpu torch==2.13.0

RUN useradd --create-home --uid 1000 aprl \
    && mkdir -p /home/aprl/app /home/aprl/runs \
    && chown aprl:aprl /home/aprl/app /home/aprl/runs

# Dependencies before the code, so that a change of the code does not install them again.
WORKDIR /home/aprl/app
COPY constraints.txt pyproject.toml setup.py README.md LICENSE ./
RUN mkdir -p src/aprl && touch src/aprl/__init__.py \
    && pip install -c constraints.txt -e .

COPY --chown=aprl:aprl . .

USER aprl
VOLUME /home/aprl/runs
ENTRYPOINT ["python", "-m", "aprl.train"]
CMD ["with", "finetune_defence", "root_dir=/home/aprl/runs"]
