# Debian's Prometheus with promtool, for ./dev demo --dashboards and the check of the alerts. A file of its own: its
# changes rebuild nothing else, and nothing else needs it.

ARG BASE=debian:trixie-slim

FROM ${BASE} AS prometheus
RUN --mount=type=secret,id=apt-sources,target=/etc/apt/sources.list \
    --mount=type=secret,id=settings \
    if [ -f /run/secrets/settings ]; then . /run/secrets/settings; fi \
    && apt-get update \
    && apt-get install -y --no-install-recommends prometheus \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
ENTRYPOINT ["/usr/bin/prometheus"]
