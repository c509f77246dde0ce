"""Must be imported before torch.distributed is used. Lets torchrun create its stores with a torch
that is built without libuv, as Debian's is: torchrun requests libuv whatever USE_LIBUV says."""

import os
import sys

import torch.distributed


class _Store(torch.distributed.TCPStore):
    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **{**named, "use_libuv": False})


if os.environ.get("USE_LIBUV") == "0":
    # The launcher's other modules import the class from here.
    torch.distributed.TCPStore = _Store
    # (torch.distributed.rendezvous is also a function, which hides the module of that name.)
    sys.modules["torch.distributed.rendezvous"].TCPStore = _Store
