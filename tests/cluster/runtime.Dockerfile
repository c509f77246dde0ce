# A product image from programs that ./dev has already compiled. BASE is a stage of the root's Dockerfile.
ARG BASE
FROM ${BASE}
COPY . /usr/local/bin/
