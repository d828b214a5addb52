"""Which device a model runs on. Never another one than was asked for."""

import torch

from hipporag_torch.errors import ConfigError


def resolved_device(name: str) -> torch.device:
    """`auto` is the GPU if PyTorch sees one, else the CPU; anything else is taken at its word.

    Raises `ConfigError` for a name that PyTorch does not know and for a GPU that is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}") from error
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}")
    seen = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device.type == "cuda" and (device.index or 0) >= seen:
        raise ConfigError(
            f"device={name} was asked for, but PyTorch {torch.__version__} sees {seen} CUDA devices; "
            "install the CUDA build of torch or check CUDA_VISIBLE_DEVICES, or set device=cpu or device=auto"
        )
    return device
