# Lightning and experiment trackers, added to the test image of Hugging Face. MLflow's small package needs sqlalchemy and
# alembic for a database of its own. Lightning would install another torch, so it comes without what it needs.
ARG BASE
FROM ${BASE}
USER 0:0
RUN --mount=type=secret,id=apt-sources,target=/etc/apt/sources.list \
    --mount=type=secret,id=ca-bundle --mount=type=secret,id=settings \
    if [ -f /run/secrets/settings ]; then . /run/secrets/settings; fi \
    && apt-get update \
    && cd /tmp && apt-get download python3-pip && dpkg -x python3-pip_*.deb pip \
    && pip() { PYTHONPATH=pip/usr/lib/python3/dist-packages python3 -m pip install --no-cache-dir --no-compile --break-system-packages "$@"; } \
    && pip "wandb==0.31.*" "mlflow-skinny==3.17.*" "sqlalchemy==2.1.*" "alembic==1.20.*" "lightning-utilities==0.15.*" \
    && pip --no-deps "lightning==2.6.*" "torchmetrics==1.9.*" \
    && rm -rf /tmp/pip /tmp/*.deb /var/lib/apt/lists/* /var/cache/apt/*
USER 65532:65532
