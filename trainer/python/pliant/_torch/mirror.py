"""Tensors whose memory others may read: host memory, contiguous."""

from collections.abc import Iterable

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

    @property
    def has_copy(self) -> bool:
        return not self._same

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


class RareChanges:
    """Mirrors of tensors that rarely change: frozen parameters, which may be most of a model, or an
    average that a program keeps as some. They are summed up where they are, and only those whose
    sums differ are copied."""

    def __init__(self, mirrors: Iterable[Mirror]) -> None:
        self._mirrors = [mirror for mirror in mirrors if mirror.has_copy and mirror.live.numel()]
        self._sums = [_sums(mirror.live) for mirror in self._mirrors]

    def save(self) -> None:
        sums = [_sums(mirror.live) for mirror in self._mirrors]
        if not sums:
            return
        # One look at the device's memory for all of them.
        changed = torch.stack(
            [(new != old).any() for new, old in zip(sums, self._sums, strict=True)]
        ).tolist()
        for mirror, differs in zip(self._mirrors, changed, strict=True):
            if differs:
                mirror.save()
        self._sums = sums

    def restore(self) -> None:
        for mirror in self._mirrors:
            mirror.restore()
        self._sums = [_sums(mirror.live) for mirror in self._mirrors]


def _sums(tensor: torch.Tensor) -> torch.Tensor:
    """Of the tensor's bits, by row and by column: whatever changes shows in them, except for rare
    coincidences."""
    widths = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    bits = tensor.contiguous().view(widths.get(tensor.element_size(), torch.uint8))
    rows = bits.reshape(bits.shape[0] if bits.dim() > 1 else 1, -1)
    return torch.cat([rows.sum(0, dtype=torch.int64), rows.sum(1, dtype=torch.int64)])
