# The image of Python programs, of a package that ./dev has installed already: the base is a stage of the Dockerfile at the root.
ARG BASE
FROM ${BASE}
# As the stages of the Dockerfile at the root have it.
ENV FABRIC_HOME=/usr/local
COPY package /usr/local/lib/python3.13/dist-packages
