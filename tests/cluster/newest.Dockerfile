# torch, transformers and accelerate of Debian's development suite, which are newer than those of Debian 13. Its release file
# may be older than a mirror's.
ARG BASE
FROM ${BASE}
ARG SUITE=forky
RUN --mount=type=secret,id=apt-sources --mount=type=secret,id=ca-bundle --mount=type=secret,id=settings \
    if [ -f /run/secrets/settings ]; then . /run/secrets/settings; fi \
    && sed "s/ [a-z]* main/ ${SUITE} main/" /run/secrets/apt-sources > /etc/apt/sources.list \
    && apt-get -o Acquire::Check-Valid-Until=false update \
    && apt-get install -y --no-install-recommends \
        ca-certificates libopenblas0-pthread python3 python3-numpy python3-torch python3-transformers python3-accelerate \
    && rm -rf /etc/apt/sources.list /var/lib/apt/lists/* /var/cache/apt/*
ENV OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONUNBUFFERED=1
WORKDIR /program
USER 65532:65532
