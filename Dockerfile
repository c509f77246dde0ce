# Pliant's images. All use Debian 13, so that programs run with the libraries that they were compiled against.
#
#   build          compilers and libraries; ./dev compiles and tests inside it, the source mounted
#   compile        the programs, from the source in the build context
#   operator-base  the libraries of the operator and the coordinator
#   learner-base   the libraries of the native learner: libtorch with OpenBLAS, no compilers
#   learner-pytorch-base  the libraries of Python programs: Debian's PyTorch and torchvision with OpenBLAS or, with
#                  --build-arg TORCH=2.8.0, PyPI's PyTorch of that version, with CUDA; and tensorboard
#   learner-tensorflow-base  the libraries of Keras programs: PyPI's TensorFlow for CPUs or, with
#                  --build-arg TENSORFLOW=tensorflow[and-cuda], for CUDA; and tensorboard
#   operator, learner, learner-pytorch, learner-tensorflow   the images that a cluster runs
#
#   docker build --target operator -t pliant/operator .
#   docker build --target learner  -t pliant/learner .
#   docker build --target learner-pytorch -t pliant/learner-pytorch .
#   docker build --target learner-tensorflow -t pliant/learner-tensorflow .
#
# Commands receive package mirrors and certificates of the building machine as secrets, which do not stay in the images.

ARG BASE=debian:trixie-slim

FROM ${BASE} AS operator-base
RUN --mount=type=secret,id=apt-sources,target=/etc/apt/sources.list \
    --mount=type=secret,id=settings \
    if [ -f /run/secrets/settings ]; then . /run/secrets/settings; fi \
    && apt-get update \
    && apt-get install -y --no-install-recommends \
        ca-certificates libcpprest2.10 libcurl4t64 libprometheus-cpp-core1.0 libspdlog1.15 libssl3t64 libyaml-cpp0.8 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/pliant-operator"]

# Debian's libtorch depends on Open MPI, that on UCX, and that on AMD's GPU runtime with a compiler of 200 MB. UCX loads
# that runtime only if it is there, and nothing here needs it.
FROM ${BASE} AS learner-base
RUN --mount=type=secret,id=apt-sources,target=/etc/apt/sources.list \
    --mount=type=secret,id=settings \
    if [ -f /run/secrets/settings ]; then . /run/secrets/settings; fi \
    && apt-get update \
    && apt-get install -y --no-install-recommends \
        libopenblas0-pthread libprometheus-cpp-core1.0 libspdlog1.15 libssl3t64 libtorch2.6 libyaml-cpp0.8 \
    && dpkg --purge --force-depends libamdhip64-5 libamd-comgr2 libllvm17t64 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
# A learner computes on one thread; with this variable BLAS starts no others.
ENV OPENBLAS_NUM_THREADS=1
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/pliant-learner"]

# PyPI's wheels include CUDA's libraries; Debian's PyTorch computes on the CPU. Debian lacks tensorboard, which
# pliant.TensorBoard needs.
FROM ${BASE} AS learner-pytorch-base
ARG TORCH=debian
RUN --mount=type=secret,id=apt-sources,target=/etc/apt/sources.list \
    --mount=type=secret,id=ca-bundle --mount=type=secret,id=settings \
    if [ -f /run/secrets/settings ]; then . /run/secrets/settings; fi \
    && if [ "${TORCH}" = debian ]; then debian="python3-torch python3-torchvision"; pypi=; \
       else debian=; pypi="torch==${TORCH} torchvision"; fi \
    && apt-get update \
    && apt-get install -y --no-install-recommends \
        ca-certificates libopenblas0-pthread libssl3t64 python3 python3-numpy python3-pip ${debian} \
    && pip install --no-cache-dir --no-compile --break-system-packages "tensorboard==2.20.*" ${pypi} \
    && if [ "${TORCH}" = debian ]; then apt-get purge -y --auto-remove python3-pip \
       && dpkg --purge --force-depends libamdhip64-5 libamd-comgr2 libllvm17t64; fi \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
# The number of threads that pliant.attach sets by default; with these variables BLAS starts no others.
ENV OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONUNBUFFERED=1
# Products of matrices on a GPU give the same bits in every process. cuBLAS reads it at its first use.
ENV CUBLAS_WORKSPACE_CONFIG=:4096:8
WORKDIR /program
USER 65532:65532
ENTRYPOINT ["/usr/bin/python3"]

FROM ${BASE} AS learner-tensorflow-base
ARG TENSORFLOW=tensorflow-cpu
RUN --mount=type=secret,id=apt-sources,target=/etc/apt/sources.list \
    --mount=type=secret,id=ca-bundle --mount=type=secret,id=settings \
    if [ -f /run/secrets/settings ]; then . /run/secrets/settings; fi \
    && apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libssl3t64 python3 python3-pip \
    && pip install --no-cache-dir --no-compile --break-system-packages --ignore-installed \
        "${TENSORFLOW}==2.21.*" "keras==3.15.*" "safetensors==0.8.*" "tensorboard==2.20.*" \
    && apt-get purge -y --auto-remove python3-pip \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
# The number of threads that pliant sets by default.
ENV OMP_NUM_THREADS=1 TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1 TF_CPP_MIN_LOG_LEVEL=2 PYTHONUNBUFFERED=1
ENV CUBLAS_WORKSPACE_CONFIG=:4096:8
WORKDIR /program
USER 65532:65532
ENTRYPOINT ["/usr/bin/python3"]

FROM ${BASE} AS build
RUN --mount=type=secret,id=apt-sources,target=/etc/apt/sources.list \
    --mount=type=secret,id=settings \
    if [ -f /run/secrets/settings ]; then . /run/secrets/settings; fi \
    && apt-get update \
    && apt-get install -y --no-install-recommends \
        ca-certificates ccache clang-format clang-tidy cmake curl g++ gdb git iproute2 libboost-dev \
        libboost-system-dev libcli11-dev libcpprest-dev libcurl4-openssl-dev libgmock-dev libgtest-dev libopenblas-pthread-dev \
        librapidcheck-dev libspdlog-dev libssl-dev libtorch-dev libyaml-cpp-dev make mold mypy ninja-build \
        nlohmann-json3-dev nodejs openssl pkg-config procps prometheus-cpp-dev python3 python3-pip python3-scikit-build-core python3-torch \
        python3-yaml zlib1g-dev \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
# The CUDA compiler, and headers with which tests compare our own declarations. They work without a GPU or a driver.
RUN --mount=type=secret,id=ca-bundle --mount=type=secret,id=settings \
    if [ -f /run/secrets/settings ]; then . /run/secrets/settings; fi \
    && pip install --no-cache-dir --no-deps --no-compile --target /opt/cuda-wheels \
        nvidia-cuda-nvcc==13.0.* nvidia-cuda-runtime==13.0.* nvidia-cuda-crt==13.0.* nvidia-nvvm==13.0.* \
        nvidia-cuda-cccl==13.0.* nvidia-nccl-cu13==2.28.9 \
    && ln -s cuda-wheels/nvidia/cu13 /opt/cuda \
    && ln -s cuda-wheels/nvidia/nccl /opt/nccl \
    && ln -s lib /opt/cuda/lib64 \
    && ln -s libcudart.so.13 /opt/cuda/lib/libcudart.so
ENV CUDACXX=/opt/cuda/bin/nvcc
# The assembler of CUDA 12.9, whose kernels also run with drivers from 525 on; the disassembler checks them.
RUN --mount=type=secret,id=ca-bundle --mount=type=secret,id=settings \
    if [ -f /run/secrets/settings ]; then . /run/secrets/settings; fi \
    && pip install --no-cache-dir --no-deps --no-compile --target /opt/cuda-assembler \
        nvidia-cuda-nvcc-cu12==12.9.86 nvidia-cuda-nvdisasm==13.2.86 \
    && ln -s /opt/cuda-assembler/nvidia/cuda_nvcc/bin/ptxas /opt/cuda-assembler/nvidia/cu13/bin/nvdisasm /opt/cuda-assembler

FROM build AS compile
COPY . /src
RUN cmake -S /src --preset release -DPLIANT_TESTS=OFF \
    && cmake --build /src/build/release \
    && strip /src/build/release/bin/pliant-* \
    && cmake --install /src/build/release --component python --prefix /python --strip

FROM operator-base AS operator
COPY --from=compile /src/build/release/bin/pliant-operator /src/build/release/bin/pliant-coordinator \
    /src/build/release/bin/pliant-simulate /usr/local/bin/

FROM learner-base AS learner
COPY --from=compile /src/build/release/bin/pliant-learner /src/build/release/bin/pliant-checkpoint /usr/local/bin/

# FABRIC_HOME: scripts of the old product look for that product there before they import anything.
FROM learner-pytorch-base AS learner-pytorch
ENV FABRIC_HOME=/usr/local
COPY --from=compile /python /usr/local/lib/python3.13/dist-packages

FROM learner-tensorflow-base AS learner-tensorflow
ENV FABRIC_HOME=/usr/local
COPY --from=compile /python /usr/local/lib/python3.13/dist-packages
