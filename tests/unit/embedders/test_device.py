"""Devices are what was asked for, or an error."""

import pytest
import torch

from hipporag_torch.embedders.device import resolved_device
from hipporag_torch.errors import ConfigError


def test_the_cpu_is_always_there():
    assert resolved_device("cpu") == torch.device("cpu")


def test_auto_takes_a_gpu_if_there_is_one():
    assert resolved_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", ["cuda:99", "cuda:64"])
def test_a_gpu_that_is_not_there_is_an_error(name: str):
    with pytest.raises(ConfigError, match=rf"device={name} was asked for, but .* CUDA devices; install"):
        resolved_device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_cuda_without_a_gpu_is_an_error():
    with pytest.raises(ConfigError, match="sees 0 CUDA devices"):
        resolved_device("cuda")


@pytest.mark.parametrize("name", ["gpu", "meta", ""])
def test_an_unknown_device_is_an_error(name: str):
    with pytest.raises(ConfigError, match="device must be auto, cpu, cuda or cuda:N, got"):
        resolved_device(name)
