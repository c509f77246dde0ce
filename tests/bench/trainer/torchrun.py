"""Starts torchrun with the installed torch."""

import without_libuv  # noqa: F401, before the launcher

from torch.distributed.run import main

if __name__ == "__main__":
    main()
