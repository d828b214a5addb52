"""What is demanded of a model's rows."""

import pytest
import torch

from hipporag_torch.embedders.check import checked_rows, checked_texts
from hipporag_torch.errors import BackendError, InputError

TEXTS = ["one", "two", "three " * 50]


def rows_of(*rows: list[float], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(rows, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_rows_become_unit_vectors_of_float32(dtype: torch.dtype):
    rows = checked_rows(rows_of([3, 4], [0, 0], [-2, 0], dtype=dtype), TEXTS, dim=2, embedder="fake")
    torch.testing.assert_close(rows, rows_of([0.6, 0.8], [0, 0], [-1, 0]))
    assert rows.dtype == torch.float32


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_very_small_and_very_large_rows_are_normalised(size: float):
    rows = checked_rows(rows_of([3 * size, 4 * size]), ["one"], dim=2, embedder="fake")
    torch.testing.assert_close(rows, rows_of([0.6, 0.8]))


def test_checking_twice_changes_nothing():
    once = checked_rows(torch.randn(3, 384), TEXTS, dim=384, embedder="fake")
    assert torch.equal(checked_rows(once, TEXTS, dim=384, embedder="fake"), once)


def test_rows_made_in_inference_mode_can_be_written_to():
    with torch.inference_mode():
        emb = torch.nn.functional.normalize(torch.randn(3, 4), dim=1)
    rows = checked_rows(emb, TEXTS, dim=4, embedder="fake")
    rows[0] = 0.0
    assert not rows.requires_grad


def test_no_rows_for_no_texts():
    assert checked_rows(torch.zeros(0, 4), [], dim=4, embedder="fake").shape == (0, 4)


@pytest.mark.parametrize("shape", [(3,), (2, 4), (3, 4, 1)])
def test_a_row_too_few_is_an_error(shape: tuple[int, ...]):
    with pytest.raises(
        BackendError, match=r"fake returned a tensor of shape .* for 3 texts, expected \(3, 4\)"
    ):
        checked_rows(torch.zeros(shape), TEXTS, dim=4, embedder="fake")


def test_another_dimension_is_an_error_that_names_both():
    with pytest.raises(BackendError, match=r"dim=4, .* have 5 numbers; set embedder.dim=5"):
        checked_rows(torch.zeros(3, 5), TEXTS, dim=4, embedder="fake")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinity_are_errors_that_name_the_first_text(bad: float):
    with pytest.raises(BackendError, match=r"1 of 3 texts, first for text 2: 'three three") as caught:
        checked_rows(rows_of([1, 0], [0, 1], [1, bad]), TEXTS, dim=2, embedder="fake")
    assert len(str(caught.value)) < 300


def test_texts_come_back_as_a_list():
    assert checked_texts(("a", "")) == ["a", ""]
    with pytest.raises(InputError, match="got NoneType"):
        checked_texts([None])  # pyright: ignore[reportArgumentType]
