# The image of Python programs, with a package that ./dev has already installed. BASE is a stage of the root's Dockerfile.
ARG BASE
FROM ${BASE}
# As in the stages of the root's Dockerfile.
ENV FABRIC_HOME=/usr/local
COPY package /usr/local/lib/python3.13/dist-packages
