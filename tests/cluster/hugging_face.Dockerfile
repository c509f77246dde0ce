# For the tests with libraries of Hugging Face: the image of PyTorch programs, with them added. As in keras.Dockerfile, pip is
# only unpacked. torch stays Debian's, so the libraries that would install another one come without what they need; Debian's
# typing_extensions and idna are too old, and pip cannot remove them.
ARG BASE
FROM ${BASE}
ARG TRANSFORMERS=5.24
USER 0:0
RUN --mount=type=secret,id=apt-sources,target=/etc/apt/sources.list \
    --mount=type=secret,id=ca-bundle --mount=type=secret,id=settings \
    if [ -f /run/secrets/settings ]; then . /run/secrets/settings; fi \
    && apt-get update \
    && cd /tmp && apt-get download python3-pip && dpkg -x python3-pip_*.deb pip \
    && pip() { PYTHONPATH=pip/usr/lib/python3/dist-packages python3 -m pip install --no-cache-dir --no-compile --break-system-packages "$@"; } \
    && pip --no-deps --ignore-installed "typing_extensions>=4.14" "idna>=3.11" \
    && pip "transformers==${TRANSFORMERS}.*" "safetensors==0.8.*" "datasets==5.2.*" \
    && pip --no-deps "peft==0.21.*" "accelerate==1.15.*" "trl==1.16.*" "evaluate==0.4.*" \
    && rm -rf /tmp/pip /tmp/*.deb /var/lib/apt/lists/* /var/cache/apt/*
USER 65532:65532
