"""Facts about a machine with a GPU that the design of the exchange depends on. Each is measured here and now."""

import argparse
import ctypes
import json
import mmap
import multiprocessing
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable

FACTS: dict[str, Callable[[], None]] = {}
MIB = 1 << 20


def fact(function: Callable[[], None]) -> Callable[[], None]:
    FACTS[function.__name__] = function
    return function


def show(what: str, value: object, unit: str = "") -> None:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    print(f"  {what:<58} {text} {unit}".rstrip(), flush=True)


@fact
def software() -> None:
    import torch

    show("driver", driver_version())
    show("GPU", torch.cuda.get_device_name())
    show("torch", torch.__version__)
    show("CUDA of torch", torch.version.cuda)
    show("cuDNN", torch.backends.cudnn.version())
    show("NCCL", ".".join(map(str, torch.cuda.nccl.version())))
    show("kernel", platform.release())
    show("libc", " ".join(platform.libc_ver()))
    show("Python", platform.python_version())
    for name in ("libssl.so.3", "libstdc++.so.6"):
        try:
            ctypes.CDLL(name)
            show(name, "there")
        except OSError as error:
            show(name, f"missing: {error}")
    interfaces = [name for _, name in socket.if_nameindex()]
    show("network interfaces", ", ".join(interfaces))
    show("/dev/shm", f"{os.statvfs('/dev/shm').f_frsize * os.statvfs('/dev/shm').f_blocks // MIB} MiB")


def driver_version() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()


# -- Copies and latencies --


def gpu_seconds(work: Callable[[], None], repeats: int = 10) -> float:
    """The median of one call's time, by the device's clock."""
    import torch

    times = []
    for _ in range(repeats + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times[2:])


@fact
def copies() -> None:
    import torch

    size = 512 * MIB
    device, other = (torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2))
    pinned = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    pageable = torch.ones(size, dtype=torch.uint8)
    for what, to, source in (
        ("pinned host to device", device, pinned),
        ("device to pinned host", pinned, device),
        ("pageable host to device", device, pageable),
        ("device to pageable host", pageable, device),
        ("within the device (bytes read and written: twice)", other, device),
    ):
        seconds = gpu_seconds(lambda to=to, source=source: to.copy_(source, non_blocking=True))
        show(f"copy of 512 MiB, {what}", size / seconds / 1e9, "GB/s")
    small = torch.zeros(4, device="cuda")
    begin = time.perf_counter()
    for _ in range(1000):
        small.cpu()
    show("device to host, 16 bytes, with its wait", (time.perf_counter() - begin) * 1e3, "us")


@fact
def launches() -> None:
    import torch

    x = torch.zeros(1, device="cuda")
    for _ in range(100):
        x.add_(1)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(10_000):
        x.add_(1)
    issued = time.perf_counter() - begin
    torch.cuda.synchronize()
    show("launch of a small kernel from Python, issue only", issued * 1e2, "us")
    waits = []
    for _ in range(200):
        event = torch.cuda.Event()
        begin = time.perf_counter()
        x.add_(1)
        event.record()
        while not event.query():
            pass
        waits.append(time.perf_counter() - begin)
    show("launch, event, until a poll sees it (median)", statistics.median(waits) * 1e6, "us")


# -- Memory shared between processes --


@fact
def memory_of_other_processes() -> None:
    memfd_registration()
    vmm_descriptors()


def memfd_registration() -> None:
    """Host memory that two processes share can be pinned, so that the device copies to it directly."""
    import torch

    size = 256 * MIB
    descriptor = os.memfd_create("pliant")
    os.ftruncate(descriptor, size)
    shared = mmap.mmap(descriptor, size)
    view = (ctypes.c_char * size).from_buffer(shared)
    runtime = torch.cuda.cudart()
    address = ctypes.addressof(view)
    begin = time.perf_counter()
    ctypes.memset(address, 1, size)
    show("memfd of 256 MiB: first touch", (time.perf_counter() - begin) * 1e3, "ms")
    begin = time.perf_counter()
    result = int(runtime.cudaHostRegister(address, size, 0))
    show("memfd of 256 MiB: cudaHostRegister", (time.perf_counter() - begin) * 1e3, f"ms, result {result}")
    if result == 0:
        host = torch.frombuffer(shared, dtype=torch.uint8)
        device = torch.empty(size, dtype=torch.uint8, device="cuda")
        seconds = gpu_seconds(lambda: host.copy_(device, non_blocking=True))
        show("device to registered memfd", size / seconds / 1e9, "GB/s")
        torch.cuda.synchronize()
        del host
        runtime.cudaHostUnregister(address)


def cu(result: tuple) -> object:
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(f"CUDA: {status}")
    return values[0] if values else None


VMM_BYTES = 64 * MIB


def vmm_properties(driver: object) -> object:
    properties = driver.CUmemAllocationProp()
    properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = 0
    kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    properties.requestedHandleTypes = kind
    return properties


def vmm_map(driver: object, handle: object) -> int:
    address = cu(driver.cuMemAddressReserve(VMM_BYTES, 0, 0, 0))
    cu(driver.cuMemMap(address, VMM_BYTES, 0, handle, 0))
    access = driver.CUmemAccessDesc()
    access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = 0
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    cu(driver.cuMemSetAccess(address, VMM_BYTES, [access], 1))
    return int(address)


def vmm_context() -> object:
    from cuda.bindings import driver

    cu(driver.cuInit(0))
    cu(driver.cuCtxSetCurrent(cu(driver.cuDevicePrimaryCtxRetain(cu(driver.cuDeviceGet(0))))))
    return driver


def vmm_reader(connection: socket.socket) -> None:
    driver = vmm_context()
    _, (descriptor,), _, _ = socket.recv_fds(connection, 1, 1)
    begin = time.perf_counter()
    kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    address = vmm_map(driver, cu(driver.cuMemImportFromShareableHandle(descriptor, kind)))
    seconds = time.perf_counter() - begin
    word = bytearray(4)
    cu(driver.cuMemcpyDtoH(word, address + VMM_BYTES - 4, 4))
    connection.send(json.dumps({"seconds": seconds, "read": word.hex()}).encode())


def vmm_descriptors() -> None:
    """Device memory can be lent to another process as a file descriptor."""
    ours, theirs = socket.socketpair()
    reader = multiprocessing.get_context("spawn").Process(target=vmm_reader, args=(theirs,))
    reader.start()
    driver = vmm_context()
    begin = time.perf_counter()
    handle = cu(driver.cuMemCreate(VMM_BYTES, vmm_properties(driver), 0))
    address = vmm_map(driver, handle)
    cu(driver.cuMemsetD32(address, 0x12345678, VMM_BYTES // 4))
    kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    descriptor = int(cu(driver.cuMemExportToShareableHandle(handle, kind, 0)))
    cu(driver.cuCtxSynchronize())
    show("64 MiB of device memory: create, map, fill, export", (time.perf_counter() - begin) * 1e3, "ms")
    socket.send_fds(ours, [b"x"], [descriptor])
    ours.settimeout(60)
    answer = json.loads(ours.recv(1000))
    reader.join(30)
    show("the same: import and map in another process", answer["seconds"] * 1e3, "ms")
    show("the other process reads", answer["read"], "(78563412: right)")


# -- NCCL --

UniqueId = ctypes.c_char * 128


def nccl() -> ctypes.CDLL:
    import torch  # loads the library

    torch.cuda.init()
    for line in open("/proc/self/maps", encoding="utf-8"):
        if "libnccl.so" in line:
            return ctypes.CDLL(line.split()[-1])
    raise RuntimeError("torch has not loaded NCCL")


def nccl_check(library: ctypes.CDLL, result: int, what: str) -> None:
    if result != 0:
        library.ncclGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"{what}: {library.ncclGetErrorString(result).decode()}")


def nccl_rank(rank: int, world: int, ids: object, results: object, dies: bool) -> None:
    """Measures one rank's life: create, first operations, and its end or the abort after a peer's death."""
    os.environ["NCCL_HOSTID"] = f"host-{rank}"  # otherwise NCCL refuses two ranks on one GPU
    os.environ["NCCL_SOCKET_IFNAME"] = "lo"
    import torch

    library, times = nccl(), {}
    torch.cuda.set_device(0)
    data = torch.ones(16 * MIB, device="cuda")  # 64 MiB
    out = torch.empty_like(data)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def timed(what: str, work: Callable[[], None]) -> None:
        begin = time.perf_counter()
        work()
        times[what] = time.perf_counter() - begin

    def all_reduce() -> None:
        result = library.ncclAllReduce(ctypes.c_void_p(data.data_ptr()), ctypes.c_void_p(out.data_ptr()),
                                       ctypes.c_size_t(data.numel()), 7, 0, communicator, stream)
        nccl_check(library, result, "ncclAllReduce")

    for round_ in range(2):
        unique = UniqueId()
        if rank == 0:
            nccl_check(library, library.ncclGetUniqueId(ctypes.byref(unique)), "ncclGetUniqueId")
            for _ in range(world - 1):
                ids[round_].put(unique.raw)
        else:
            unique.raw = ids[round_].get(timeout=60)
        communicator = ctypes.c_void_p()
        identity = (ctypes.c_char * 128).from_buffer_copy(unique.raw)

        class ById(ctypes.Structure):
            _fields_ = [("internal", ctypes.c_char * 128)]

        by_value = ById.from_buffer_copy(identity)
        library.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ById, ctypes.c_int]
        prefix = "first" if round_ == 0 else "second"
        timed(f"{prefix} communicator: create", lambda: nccl_check(
            library, library.ncclCommInitRank(ctypes.byref(communicator), world, by_value, rank), "init"))
        timed(f"{prefix} communicator: first all-reduce of 64 MiB", lambda: (all_reduce(), torch.cuda.synchronize()))
        timed(f"{prefix} communicator: second all-reduce of 64 MiB", lambda: (all_reduce(), torch.cuda.synchronize()))
        if round_ == 0:
            timed("destroy", lambda: nccl_check(library, library.ncclCommDestroy(communicator), "destroy"))
    # The last rank dies; the others have an operation under way and abort.
    results.put((rank, times))
    if rank == world - 1:
        if dies:
            time.sleep(1)
            os.kill(os.getpid(), signal.SIGKILL)
        return
    time.sleep(2)
    all_reduce()
    time.sleep(1)
    begin = time.perf_counter()
    aborted = threading.Thread(target=lambda: library.ncclCommAbort(communicator), daemon=True)
    aborted.start()
    aborted.join(20)
    times = {"abort after a peer's SIGKILL, with an all-reduce under way":
             None if aborted.is_alive() else time.perf_counter() - begin}
    begin = time.perf_counter()
    if not aborted.is_alive():
        torch.cuda.synchronize()
        times["the device is idle after the abort"] = time.perf_counter() - begin
        times["sum of the last complete all-reduce"] = float(out[0])
    results.put((rank, times))
    results.close()
    results.join_thread()
    os._exit(0)


@fact
def nccl_on_one_gpu() -> None:
    """Several ranks share this GPU: times are those of time slices and sockets, not of several GPUs."""
    context = multiprocessing.get_context("spawn")
    for world in (2, 4):
        ids, results = [context.Queue(), context.Queue()], context.Queue()
        ranks = [context.Process(target=nccl_rank, args=(rank, world, ids, results, True)) for rank in range(world)]
        for each in ranks:
            each.start()
        longest: dict[str, float | None] = {}
        for _ in range(2 * world - 1):
            _, times = results.get(timeout=120)
            for what, seconds in times.items():
                known = longest.get(what, 0.0)
                longest[what] = None if seconds is None or known is None else max(known, seconds)
        for what, seconds in longest.items():
            if what.startswith("sum"):
                show(f"W = {world}: {what}", seconds, f"({world} x 1 is right)")
            else:
                show(f"W = {world}: {what}", "not within 20 s" if seconds is None else seconds * 1e3, "ms")
        for each in ranks:
            each.join(5)
            if each.is_alive():
                each.kill()


def nccl_peer(ids: object, begin: object) -> None:
    os.environ.update(NCCL_HOSTID="host-1", NCCL_SOCKET_IFNAME="lo")
    one_more_communicator(1, ids, begin)


def one_more_communicator(rank: int, ids: object, begin: object) -> float:
    import torch

    library = nccl()
    torch.cuda.set_device(0)
    begin.wait(60)

    class ById(ctypes.Structure):
        _fields_ = [("internal", ctypes.c_char * 128)]

    unique = ById()
    if rank == 0:
        nccl_check(library, library.ncclGetUniqueId(ctypes.byref(unique)), "ncclGetUniqueId")
        ids.put(bytes(unique))
    else:
        unique = ById.from_buffer_copy(ids.get(timeout=60))
    communicator = ctypes.c_void_p()
    started = time.perf_counter()
    library.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ById, ctypes.c_int]
    nccl_check(library, library.ncclCommInitRank(ctypes.byref(communicator), 2, unique, rank), "init")
    return time.perf_counter() - started


@fact
def a_communicator_during_training() -> None:
    """The longest step while another thread creates a communicator: does creation hold the driver's lock?"""
    os.environ.update(NCCL_HOSTID="host-0", NCCL_SOCKET_IFNAME="lo")
    import torch

    context = multiprocessing.get_context("spawn")
    ids, begin = context.Queue(), context.Event()
    peer = context.Process(target=nccl_peer, args=(ids, begin))
    peer.start()
    a, b = (torch.randn(4096, 4096, device="cuda") for _ in range(2))

    def step() -> float:
        started = time.perf_counter()
        for _ in range(20):
            torch.mm(a, b, out=a_out)
        torch.empty(1000, device="cuda")
        torch.cuda.synchronize()
        return time.perf_counter() - started

    a_out = torch.empty_like(a)
    for _ in range(20):
        step()
    time.sleep(8)  # the peer has loaded torch by now
    alone = [step() for _ in range(100)]
    made: list[float] = []
    thread = threading.Thread(target=lambda: made.append(one_more_communicator(0, ids, begin)))
    begin.set()
    thread.start()
    beside = []
    while thread.is_alive():
        beside.append(step())
    thread.join()
    show("step alone, median / longest", f"{statistics.median(alone) * 1e3:.2f} / {max(alone) * 1e3:.2f}", "ms")
    show("step during the creation, median / longest",
         f"{statistics.median(beside) * 1e3:.2f} / {max(beside) * 1e3:.2f}", f"ms, {len(beside)} steps")
    show("the creation took", made[0] * 1e3 if made else "it failed", "ms")
    peer.join(5)
    peer.kill()


# -- Models --


@fact
def steps_by_micro_batch() -> None:
    import torch
    from program import transformer, vision

    def measured(name: str, make: Callable[[], tuple], sizes: tuple[int, ...]) -> None:
        model, inputs_of, loss_of = make()
        model.cuda()
        for deterministic in (False, True):
            torch.use_deterministic_algorithms(deterministic)
            torch.backends.cudnn.benchmark = False
            for size in sizes:
                batch = [each.cuda() for each in inputs_of(size)]

                def step(batch: list = batch) -> None:
                    loss_of(model, batch).backward()
                    model.zero_grad(set_to_none=True)

                seconds = gpu_seconds(step, repeats=8)
                kind = "deterministic" if deterministic else "free"
                show(f"{name}, micro-batch {size}, {kind}", seconds * 1e3, f"ms, {size / seconds:.0f} samples/s")
        torch.use_deterministic_algorithms(False)

    measured("ResNet-18, 32 x 32, fp32", vision, (1, 8, 32, 128, 256))
    measured("transformer of 124 M, 1024 tokens, TF32 off", transformer, (1, 4, 16))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all: {', '.join(FACTS)}")
    parser.add_argument("--names", dest="list", action="store_true", help="print the names and end")
    options = parser.parse_args()
    if options.list:
        print(" ".join(FACTS))
        return 0
    unknown = [name for name in options.names if name not in FACTS]
    if unknown:
        parser.error(f"there is no fact {unknown[0]}: choose from {', '.join(FACTS)}")
    failed = 0
    for name, measure in FACTS.items():
        if options.names and name not in options.names:
            continue
        print(f"{name.replace('_', ' ')}:", flush=True)
        begin = time.monotonic()
        # A process of its own: one fact's failure, or its memory, does not reach the next.
        if options.names and len(options.names) == 1:
            measure()
            continue
        command = [sys.executable, "-B", __file__, name]
        try:
            lines = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
            print("\n".join(lines.stdout.splitlines()[1:]), flush=True)
            if lines.returncode != 0:
                failed += 1
                print(f"  failed: {' | '.join(lines.stderr.splitlines()[-6:])}")
        except subprocess.TimeoutExpired as late:
            failed += 1
            print(f"  {(late.stdout or b'').decode()}\n  failed: not done within 90 s")
        print(f"  ({time.monotonic() - begin:.1f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
