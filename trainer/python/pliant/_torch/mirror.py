"""Tensors in contiguous memory, which the learner may read."""

from collections.abc import Iterable

import torch


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether the learner reads memory of the tensor's device: the CPU's, or an NVIDIA GPU's."""
    return tensor.device.type == "cpu" or (tensor.is_cuda and torch.version.hip is None)


class Mirror:
    """A tensor and the memory that is registered for it: its own if that is contiguous and on a
    device that the learner reads, else a copy."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.live = tensor.detach()
        self._same = is_readable(tensor) and tensor.is_contiguous()
        self.registered = self.live if self._same else self._make_copy()
        self.save()

    def _make_copy(self) -> torch.Tensor:
        device = self.live.device if is_readable(self.live) else "cpu"
        return torch.empty(self.live.shape, dtype=self.live.dtype, device=device)

    @property
    def has_copy(self) -> bool:
        return not self._same

    def save(self) -> None:
        """Copies the tensor's values to the registered memory."""
        if not self._same:
            self.registered.copy_(self.live)

    def restore(self) -> None:
        """Copies the values in the registered memory to the tensor."""
        if not self._same:
            with torch.no_grad():
                self.live.copy_(self.registered)

    def adopt(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copies the values of a tensor that replaced this one. Returns the tensor to put back."""
        if tensor.data_ptr() != self.live.data_ptr():
            with torch.no_grad():
                self.live.copy_(tensor)
        return self.live


class RareChanges:
    """Mirrors of tensors that rarely change: frozen parameters, which may be most of a model, or an
    average that a program keeps in frozen parameters. Checksums are computed on the device, and
    only tensors whose checksums differ are copied."""

    def __init__(self, mirrors: Iterable[Mirror]) -> None:
        self._mirrors = [mirror for mirror in mirrors if mirror.has_copy and mirror.live.numel()]
        self._sums = [sums_of_bits(mirror.live) for mirror in self._mirrors]

    def save(self) -> None:
        sums = [sums_of_bits(mirror.live) for mirror in self._mirrors]
        if not sums:
            return
        # One transfer from the device for all of them.
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
        self._sums = [sums_of_bits(mirror.live) for mirror in self._mirrors]


def sums_of_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Sums of the tensor's bits by column and by row: integers, so the same on every device. Any
    change alters them, apart from rare collisions."""
    widths = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    bits = tensor.contiguous().view(widths.get(tensor.element_size(), torch.uint8))
    rows = bits.reshape(bits.shape[0] if bits.dim() > 1 else 1, -1)
    return torch.cat([rows.sum(0, dtype=torch.int64), rows.sum(1, dtype=torch.int64)])
