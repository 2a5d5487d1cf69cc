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


@pytest.fixture
def op_db():
    """PyTorch's own samples of every operation."""
    from torch.testing._internal.common_methods_invocations import op_db

    # That import forbids to set torch.backends.
    torch.backends.disable_global_flags.__globals__["__allow_nonbracketed_mutation_flag"] = True
    return op_db
