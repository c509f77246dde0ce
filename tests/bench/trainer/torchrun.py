"""torchrun, with whatever torch there is."""

import without_libuv  # noqa: F401, before the launcher

from torch.distributed.run import main

if __name__ == "__main__":
    main()
