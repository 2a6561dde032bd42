import numpy as np
import pytest
import torch

from umix.data.arrays import ArrayPreprocessing
from umix.data.images.image_folder import ImageReader
from umix.exports.preprocessing import ArrayInputs, ImageInputs


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("shape", [(3,), (8, 8, 3)])
def test_arrays_are_standardised_inside_as_predict_does_it(shape: tuple[int, ...], standardize: bool) -> None:
    values = np.random.default_rng(0).normal(5, 3, size=(20, *shape))
    reader = ArrayPreprocessing.fit(values, np.arange(10), x="x", standardize=standardize)
    module = ArrayInputs(reader)
    assert module.tensors[0].shape == ("n", *shape)
    made = module(torch.from_numpy(values.astype(np.float32)))
    assert torch.equal(made, reader.inputs(values).ready())


def test_images_are_cut_and_normalised_inside_as_predict_does_it() -> None:
    reader = ImageReader(28)
    module = ImageInputs(reader)
    assert module.tensors[0].shape == ("n", 3, 32, 32)
    pixels = torch.from_numpy(np.random.default_rng(0).integers(256, size=(4, 3, 32, 32), dtype=np.uint8))
    assert torch.equal(module(pixels.float()), reader.transform(pixels))
    assert module.left_out == ("decoding images and scaling them to 32×32 (bilinear, as Pillow does it)",)
