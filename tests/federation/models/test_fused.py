"""The native block gives torch's results, also where numbers end, and says when it cannot run."""

import importlib.util
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from federation.networks import assert_near, assert_same_kind, generator, results, seeded

from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.models import fused as native
from fedaccord.federation.models.fused import hidden_layer_in_torch
from fedaccord.federation.models.networks import PaperNet

needs_native = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


@pytest.fixture(autouse=True)
def one_thread_and_one_seed():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
    torch.set_num_threads(before)


def batch(rows, seed=0):
    random = torch.Generator().manual_seed(seed)
    images = torch.rand(rows, 1, 28, 28, generator=random)
    # Much of a real image is blank.
    images[:, :, :6] = 0
    return images, torch.randint(47, (rows,), generator=random)


def state_of(kind):
    """Give weights: fresh ones, or such as training leaves, of which few units live."""
    torch.manual_seed(1)
    state = PaperNet(47, "eager").state_dict()
    if kind == "sparse":
        state["conv2.bias"][:] -= torch.linspace(0, 0.6, 64)
        state["fc1.bias"][:] -= torch.linspace(-0.02, 0.1, 128)
    return state


def exact_results(state, images, labels):
    plain = seeded(PaperNet(47, "eager").double(), state)
    return results(plain, images.double(), labels)


@needs_native
@pytest.mark.parametrize("kind", ["fresh", "sparse"])
@pytest.mark.parametrize("rows", [1, 2, 7, 40])
def test_scores_and_gradients_are_those_of_exact_arithmetic(kind, rows):
    state = state_of(kind)
    images, labels = batch(rows, seed=rows)
    expected = exact_results(state, images, labels)
    assert_near(results(seeded(PaperNet(47, "native"), state), images, labels), expected)


@needs_native
@pytest.mark.parametrize("name", ["conv1.weight", "conv1.bias", "conv2.weight", "fc1.weight"])
def test_the_comparison_with_exact_arithmetic_objects_to_small_faults(name):
    state = state_of("fresh")
    images, labels = batch(3)
    expected = exact_results(state, images, labels)
    state[name] *= 1.0001
    with pytest.raises(AssertionError):
        assert_near(results(seeded(PaperNet(47, "native"), state), images, labels), expected)
    wrong = dict(expected)
    wrong[name] = expected[name] * (1 + 1e-5)
    with pytest.raises(AssertionError, match=name):
        assert_near(wrong, expected)
    wrong[name] = expected[name].clone()
    wrong[name].view(-1)[0] = torch.nan
    with pytest.raises(AssertionError, match=name):
        assert_near(wrong, expected)


def gradients_of_ties(engine, bias):
    """Give gradients where all places of a pool window are equal, by weights of zero."""
    state = state_of("fresh")
    state["conv2.weight"][:] = 0
    state["conv2.bias"][:] = bias
    return results(seeded(PaperNet(47, engine), state), *batch(4))


@needs_native
def test_of_equals_the_first_passes_the_gradient_on_as_in_torch():
    found, expected = gradients_of_ties("native", 0.5), gradients_of_ties("eager", 0.5)
    assert expected["conv2.weight"].abs().max() > 0
    assert_near(found, expected)
    # Were it the last one, it would show: the patches below and to the right are others.
    last = dict(expected)
    last["conv2.weight"] = expected["conv2.weight"].roll((1, 1), (2, 3))
    with pytest.raises(AssertionError, match=r"conv2\.weight"):
        assert_near(found, last)


@needs_native
def test_of_equals_the_first_passes_the_gradient_on_in_any_pair():
    # Black and white images, and kernels of one tap, of a size that Winograd's fractions divide:
    # no step rounds, so what ties by torch's arithmetic ties by the block's.
    random = torch.Generator().manual_seed(5)
    images = torch.randint(2, (6, 1, 28, 28), generator=random).float()
    weights = [torch.zeros(shape) for shape in native.SHAPES]
    for place, size in ((0, 1), (2, 576)):
        kernels = weights[place].view(-1, 9)
        taps = torch.randint(9, (len(kernels), 1), generator=random)
        signs = torch.randint(-1, 2, taps.shape, generator=random)
        kernels.scatter_(1, taps, size * signs.float())
    weights[4][:] = torch.randn(native.SHAPES[4], generator=random)
    found, expected = {}, {}
    for outcome, layer, kind in (
        (found, native.hidden_layer, torch.float32),
        (expected, hidden_layer_in_torch, torch.float64),
    ):
        leaves = [weight.to(kind, copy=True).requires_grad_() for weight in weights]
        hidden = layer(images.to(kind), leaves, None, 0)
        hidden.sum().backward()
        outcome |= {str(place): leaf.grad for place, leaf in enumerate(leaves)}
        outcome["hidden"] = hidden.detach()
    assert_near(found, expected)


@needs_native
def test_relu_passes_no_gradient_at_zero_as_in_torch():
    found, expected = gradients_of_ties("native", 0.0), gradients_of_ties("eager", 0.0)
    assert expected["conv2.bias"].abs().max() == 0
    assert found["conv2.bias"].abs().max() == 0
    assert_near(found, expected)


@needs_native
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 3e38, 1e25])
@pytest.mark.parametrize(
    "place", ["images", "conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
              "fc1.bias", "fc2.weight"],
)  # fmt: skip
def test_what_is_no_finite_number_spreads_as_in_torch(value, place):
    state = state_of("fresh")
    images, labels = batch(3)
    if place == "images":
        images[1, 0, 14, 14] = value
    else:
        state[place].view(-1)[7] = value
    expected = results(seeded(PaperNet(47, "eager"), state), images, labels)
    found = results(seeded(PaperNet(47, "native"), state), images, labels)
    assert_same_kind(found, expected)


@needs_native
def test_features_that_overflow_do_so_as_in_torch_even_where_small_weights_follow():
    state = state_of("fresh")
    state["fc1.weight"] *= 1e-20
    images, labels = batch(3)
    images[1] = 3e38
    expected = results(seeded(PaperNet(47, "eager"), state), images, labels)
    found = results(seeded(PaperNet(47, "native"), state), images, labels)
    assert not expected["evaluated"].isfinite().all()
    assert_same_kind(found, expected)


@needs_native
def test_a_nan_in_one_image_leaves_the_others_alone():
    images, _ = batch(3)
    network = PaperNet(47, "native").eval()
    with torch.no_grad():
        clean = network(images)
        images[1, 0, 3, 3] = torch.nan
        found = network(images)
    assert found[1].isnan().all()
    assert_near({"others": found[[0, 2]]}, {"others": clean[[0, 2]]})


@needs_native
def test_a_gradient_of_nan_reaches_the_weights():
    network = PaperNet(47, "native").eval()
    (network(batch(2)[0]) * torch.nan).sum().backward()
    plain = PaperNet(47, "eager").eval()
    plain.load_state_dict(network.state_dict())
    (plain(batch(2)[0]) * torch.nan).sum().backward()
    assert plain.conv1.weight.grad.isnan().any()
    assert_same_kind(
        {name: weight.grad for name, weight in network.named_parameters()},
        {name: weight.grad for name, weight in plain.named_parameters()},
    )


def test_the_comparison_of_nan_objects_to_a_swallowed_one():
    expected = {"scores": torch.tensor([1.0, torch.nan, torch.inf])}
    assert_same_kind({"scores": torch.tensor([2.0, torch.nan, torch.inf])}, expected)
    for wrong in ([1.0, 0.0, torch.inf], [1.0, torch.nan, 1.0], [1.0, torch.nan, -torch.inf]):
        with pytest.raises(AssertionError):
            assert_same_kind({"scores": torch.tensor(wrong)}, expected)


@needs_native
def test_an_empty_batch_gives_nothing_and_gradients_of_zero():
    network = PaperNet(47, "native")
    scores = network(torch.empty(0, 1, 28, 28))
    assert scores.shape == (0, 47)
    scores.sum().backward()
    assert all(weight.grad.abs().max() == 0 for weight in network.parameters())


@needs_native
def test_images_may_lie_in_memory_in_any_way():
    network = PaperNet(47, "native").eval()
    images, _ = batch(8)
    wide = torch.rand(8, 1, 40, 40)
    with torch.no_grad():
        for odd in (images.transpose(2, 3), images[::2], wide[:, :, 3:31, 5:33],
                    images[:1].expand(4, 1, 28, 28), images.flip(0)):  # fmt: skip
            assert torch.equal(
                network(odd), network(odd.clone(memory_format=torch.contiguous_format))
            )


@needs_native
def test_a_row_does_not_depend_on_its_batch():
    network = PaperNet(47, "native").eval()
    images, _ = batch(9)
    weights = [
        p.detach() for m in (network.conv1, network.conv2, network.fc1) for p in m.parameters()
    ]
    drawn = torch.from_numpy(generator(4).integers(256, size=(9, native.FEATURES), dtype="uint8"))
    whole = native.hidden_layer(images, weights, drawn, 64)
    for cut in (1, 4):
        parts = zip(images.split(cut), drawn.split(cut), strict=True)
        again = [native.hidden_layer(part, weights, mine, 64) for part, mine in parts]
        assert torch.equal(torch.cat(again), whole)


@needs_native
def test_dropout_does_not_depend_on_whether_gradients_are_wanted():
    images, _ = batch(3)
    with_gradients = seeded(PaperNet(47, "native"), state_of("fresh"))(images)
    with torch.no_grad():
        without = seeded(PaperNet(47, "native"), state_of("fresh"))(images)
    assert with_gradients.requires_grad and not without.requires_grad
    assert torch.equal(with_gradients, without)
    assert not torch.equal(with_gradients, PaperNet(47, "native").eval()(images))


@needs_native
def test_threads_do_not_disturb_each_other():
    images, _ = batch(24)
    network = PaperNet(47, "native").eval()
    found = {}

    def work(place):
        # Gradients are switched off by thread.
        with torch.no_grad():
            found[place] = [network(images[place::3]) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with torch.no_grad():
        for place in range(3):
            expected = network(images[place::3])
            assert all(torch.equal(scores, expected) for scores in found[place])


@needs_native
def test_a_gradient_of_the_images_is_torchs():
    images, _ = batch(2)
    gradients = {}
    for engine in ("eager", "native"):
        network = seeded(PaperNet(47, engine), state_of("fresh"))
        given = images.clone().requires_grad_()
        network(given).square().sum().backward()
        gradients[engine] = given.grad
    assert_near({"images": gradients["native"]}, {"images": gradients["eager"]}, 1e-5)


@needs_native
def test_backward_may_be_asked_for_twice():
    network = seeded(PaperNet(47, "native"))
    loss = network(batch(3)[0]).square().sum()
    loss.backward(retain_graph=True)
    first = network.conv2.weight.grad.clone()
    loss.backward()
    assert torch.equal(network.conv2.weight.grad, 2 * first)


@needs_native
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"images": torch.zeros(2, 1, 28, 28).double()}, "float32 on the CPU; got torch.float64"),
        ({"images": torch.zeros(2, 1, 8, 8)}, "28 x 28 images; got shape"),
        ({"weights": [torch.zeros(32, 1, 3, 3).half()]}, "got torch.float16"),
        ({"weights": [torch.zeros(64, 32, 5, 5)]}, "weights of shapes"),
        ({"drawn": torch.zeros(2, 5, dtype=torch.uint8)}, "2 x 9216 bytes"),
        ({"drawn": torch.zeros(2, 9216)}, "2 x 9216 bytes"),
    ],
)
def test_what_the_block_cannot_read_is_refused_in_a_sentence(change, words):
    weights = [torch.zeros(shape) for shape in native.SHAPES]
    given = {"images": torch.rand(2, 1, 28, 28), "weights": weights, "drawn": None, "drop": 64}
    assert native.hidden_layer(**given).shape == (2, 128)
    with pytest.raises(InputError, match=words):
        native.hidden_layer(**given | change)


def test_the_environment_can_switch_the_block_off(monkeypatch):
    monkeypatch.setenv("FEDACCORD_NATIVE", "0")
    assert not native.available()
    assert "switched off by FEDACCORD_NATIVE" in native.why_not()
    assert PaperNet().engine == "torch"
    with pytest.raises(InputError, match=r'switched off .* use engine="auto"'):
        PaperNet(47, "native")


@needs_native
def test_a_block_that_is_there_is_used_and_needs_no_excuse():
    assert native.why_not() is None
    assert PaperNet().engine == "native"


def test_a_block_that_was_not_built_says_why(tmp_path):
    library, reason = native.load_library(tmp_path)
    assert library is None
    assert reason == "the native block was not built when fedaccord was installed"
    (tmp_path / "not_built.txt").write_text("no C++ compiler was found\n")
    assert native.load_library(tmp_path)[1] == (
        "the native block was not built when fedaccord was installed (no C++ compiler was found)"
    )


def test_a_missing_block_is_a_sentence_and_not_a_crash(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "_load", lambda: native.load_library(tmp_path))
    assert not native.available()
    assert native.why_not().endswith("training uses torch, some 5 times slower")
    assert PaperNet().engine == "torch"
    weights = [torch.zeros(shape) for shape in native.SHAPES]
    with pytest.raises(FedaccordError, match="was not built"):
        native.hidden_layer(torch.zeros(1, 1, 28, 28), weights, None, 0)


def test_a_file_that_is_no_library_is_not_loaded(tmp_path):
    (tmp_path / "fused.so").write_text("not machine code")
    assert "could not be loaded" in native.load_library(tmp_path)[1]


@needs_native
def test_a_block_of_other_source_is_not_used(tmp_path):
    folder = tmp_path / "fused"
    shutil.copytree(native.FOLDER, folder)
    assert native.load_library(folder)[1] is None
    with (folder / "linear.hpp").open("a") as source:
        source.write("// changed\n")
    assert "built from another version of its source" in native.load_library(folder)[1]


def build_script(folder, monkeypatch):
    """Load the build script of this checkout, set to compile in another folder."""
    path = Path(__file__).parents[3] / "hatch_build.py"
    if not path.exists():
        pytest.skip("this is not a checkout: there is no hatch_build.py")
    spec = importlib.util.spec_from_file_location("hatch_build", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for name in ("SOURCE", "LIBRARY", "REASON"):
        monkeypatch.setattr(script, name, folder / getattr(script, name).name)
    monkeypatch.setattr(script, "FOLDER", folder)
    return script


def run_hook(script, folder):
    """Run the hook as hatchling would for an editable install, and give what it asks for."""
    warnings = []
    hook = SimpleNamespace(root=str(folder), app=SimpleNamespace(display_warning=warnings.append))
    asked = {"artifacts": []}
    script.NativeBlock.initialize(hook, "editable", asked)
    return asked, warnings


def test_without_a_compiler_the_build_goes_on_and_leaves_the_reason(tmp_path, monkeypatch):
    (tmp_path / "fused.so").write_text("of an earlier build")
    script = build_script(tmp_path, monkeypatch)
    monkeypatch.setenv("CXX", "there-is-no-such-compiler")
    asked, warnings = run_hook(script, tmp_path)
    assert asked == {"artifacts": ["not_built.txt"]}
    assert "no C++ compiler was found" in warnings[0]
    assert "(no C++ compiler was found)" in native.load_library(tmp_path)[1]


def test_a_compiler_that_fails_is_quoted(tmp_path, monkeypatch):
    script = build_script(tmp_path, monkeypatch)
    if script._compiler() is None:
        pytest.skip("there is no C++ compiler")
    (tmp_path / "fused.cpp").write_text("#error out of luck\n")
    assert "failed and said: " in script.compile_native()
    assert not (tmp_path / "fused.so").exists()


@pytest.mark.slow
def test_what_the_build_compiles_can_be_loaded(tmp_path, monkeypatch):
    script = build_script(tmp_path, monkeypatch)
    if script._compiler() is None:
        pytest.skip("there is no C++ compiler")
    for file in native.FOLDER.glob("*.[ch]pp"):
        shutil.copy(file, tmp_path)
    asked, warnings = run_hook(script, tmp_path)
    assert not warnings
    assert asked["artifacts"] == ["fused.so"]
    assert asked["pure_python"] is False
    assert asked["tag"].startswith("py3-none-")
    library, reason = native.load_library(tmp_path)
    assert library is not None, reason


@needs_native
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float64])
def test_the_block_writes_floats_whatever_torch_makes_by_default(kind):
    images, labels = batch(3)
    state = state_of("fresh")
    one, other = (seeded(PaperNet(47, "native"), state) for _ in range(2))
    expected = results(one, images, labels)
    torch.set_default_dtype(kind)
    try:
        found = results(other, images, labels)
    finally:
        torch.set_default_dtype(torch.float32)
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


@needs_native
def test_a_gradient_of_the_gradient_is_refused_and_not_wrong():
    images, labels = batch(2)
    network = seeded(PaperNet(47, "native"), state_of("fresh")).train()
    loss = torch.nn.functional.cross_entropy(network(images), labels)
    (slope,) = torch.autograd.grad(loss, [network.conv1.weight], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.square().sum().backward()


@pytest.mark.parametrize(
    ("system", "machine", "tag"),
    [
        ("linux-x86_64", "x86_64", "linux_x86_64"),
        ("macosx-11.0-arm64", "arm64", "macosx_11_0_arm64"),
        ("macosx-10.13-universal2", "arm64", "macosx_11_0_arm64"),
        ("macosx-10.13-universal2", "x86_64", "macosx_10_13_x86_64"),
    ],
)
def test_a_wheel_is_for_the_processor_that_the_block_was_compiled_for(
    system, machine, tag, tmp_path, monkeypatch
):
    assert build_script(tmp_path, monkeypatch).platform_tag(system, machine) == tag
