# A product image from programs that ./dev has compiled already: the base is a stage of the Dockerfile at the root.
ARG BASE
FROM ${BASE}
COPY . /usr/local/bin/
