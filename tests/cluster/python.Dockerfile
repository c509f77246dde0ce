# The image of Python programs, of a package that ./dev has installed already: the base is a stage of the Dockerfile at the root.
ARG BASE
FROM ${BASE}
COPY package /usr/local/lib/python3.13/dist-packages
