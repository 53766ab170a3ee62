# An image without a GPU; MuJoCo draws without a display.
#     docker build -t coach_rl .
#     docker run --rm -v "$PWD/experiments:/data/experiments" coach_rl train CartPole_PPO
FROM python:3.13-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends libegl1 libgl1 \
    && rm -rf /var/lib/apt/lists/*
ENV MUJOCO_GL=egl OMP_NUM_THREADS=1
COPY . /source
# The address of PyTorch's wheels for CPUs makes a smaller image: --build-arg TORCH_INDEX=...
ARG TORCH_INDEX=
RUN pip install --no-cache-dir torch ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} \
    && pip install --no-cache-dir -c /source/constraints.txt "/source[video,plot,sweep]" \
    && rm -rf /source
WORKDIR /data
ENTRYPOINT ["coach"]
CMD ["selftest"]
