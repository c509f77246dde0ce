# For the tests of Keras on PyTorch and on JAX: the image of PyTorch programs, with Keras and JAX for CPUs added. Keras has
# the version of learner-tensorflow-base. A file of its own, because only tests need it. pip is only unpacked: apt would
# first reinstall the packages that that image removed.
ARG BASE
FROM ${BASE}
USER 0:0
RUN --mount=type=secret,id=apt-sources,target=/etc/apt/sources.list \
    --mount=type=secret,id=ca-bundle --mount=type=secret,id=settings \
    if [ -f /run/secrets/settings ]; then . /run/secrets/settings; fi \
    && apt-get update \
    && cd /tmp && apt-get download python3-pip && dpkg -x python3-pip_*.deb pip \
    && PYTHONPATH=pip/usr/lib/python3/dist-packages python3 -m pip install --no-cache-dir --no-compile --break-system-packages \
        "jax==0.10.*" "keras==3.15.*" "safetensors==0.8.*" \
    && rm -rf /tmp/pip /tmp/*.deb /var/lib/apt/lists/* /var/cache/apt/*
USER 65532:65532
