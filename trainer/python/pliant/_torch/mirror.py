"""Tensors whose memory others may read: host memory, contiguous."""

import torch


class Mirror:
    """A tensor, and its copy in host memory. Where the tensor is in host memory already, they are
    one."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.live = tensor.detach()
        self._same = tensor.device.type == "cpu" and tensor.is_contiguous()
        # Pinned: a device copies from and to it by itself, without a detour.
        self.host = (
            self.live
            if self._same
            else torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
        )
        self.save()

    def save(self) -> None:
        """The tensor's values go to host memory."""
        if not self._same:
            self.host.copy_(self.live)

    def restore(self) -> None:
        """What is in host memory becomes the tensor's values."""
        if not self._same:
            with torch.no_grad():
                self.live.copy_(self.host)

    def adopt(self, tensor: torch.Tensor) -> torch.Tensor:
        """Takes the values of a tensor that stands in this one's place. What is to stand there."""
        if tensor.data_ptr() != self.live.data_ptr():
            with torch.no_grad():
                self.live.copy_(tensor)
        return self.live
