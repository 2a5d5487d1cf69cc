import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def as_it_was():
    """librepdl disabled, and PyTorch's settings as they were."""
    import librepdl.torch

    threads, mkldnn = torch.get_num_threads(), torch.backends.mkldnn.enabled
    torch.manual_seed(0)
    yield
    librepdl.torch.disable()
    torch.set_num_threads(threads)
    torch.backends.mkldnn.enabled = mkldnn
