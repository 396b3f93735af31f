"""Networks from ONNX: models that PyTorch exports are the networks that from_torch makes of them."""

import random

import pytest

import paceline

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")  # the exporter's
from onnx import TensorProto, helper  # noqa: E402


def exported(module, sample, path, opset=13):
    torch = pytest.importorskip("torch")
    torch.onnx.export(module, sample, path, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=["x"], dynamic_axes={"x": {0: "samples"}}, opset_version=opset)
    return path


def same(module, sample, path, opset=13):
    """The network of an exported module, which must be that of the module itself but for the names of
    layers without parameters."""
    network = paceline.from_onnx(exported(module, sample, path, opset))
    theirs = paceline.from_torch(module, sample)
    assert network.parameters == theirs.parameters == sum(p.numel() for p in module.parameters())
    assert network.forward_flops == theirs.forward_flops
    for field in ("kind", "output", "parameters", "forward_flops", "kept_elements"):
        assert list(network.layers[field]) == list(theirs.layers[field]), field
    assert list(network.gradients["name"]) == list(theirs.gradients["name"])
    return network


@pytest.mark.parametrize("name", ["resnet18", "squeezenet1_1", "mobilenet_v3_small", "shufflenet_v2_x0_5"])
def test_models_of_torchvision(models, name, tmp_path):
    torch = pytest.importorskip("torch")
    same(getattr(models, name)(), torch.zeros(1, 3, 224, 224), tmp_path / "model.onnx")


@pytest.mark.parametrize("name", ["convnext", "swin", "vit"])
def test_small_networks_of_images_with_attention(models, name, tmp_path):
    torch = pytest.importorskip("torch")
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    if name == "vit":
        module = models.VisionTransformer(56, 8, 2, 2, 12, 24, num_classes=5)
    elif name == "swin":  # the exporter has no operator for stochastic depth
        module = models.SwinTransformer([4, 4], 12, [2, 2], [1, 2], [7, 7], num_classes=5, stochastic_depth_prob=0.0)
    else:
        module = ConvNeXt([CNBlockConfig(12, 24, 1), CNBlockConfig(24, None, 1)], num_classes=5)
    same(module, torch.zeros(1, 3, 56, 56), tmp_path / "model.onnx")


@pytest.mark.parametrize("opset", [12, 13, 15, 17])
@pytest.mark.parametrize("name", ["Gpt", "Bert", "Encoder", "Llama"])
def test_transformers(name, opset, tmp_path):
    torch = pytest.importorskip("torch")
    import transformers
    same(getattr(transformers, name)(), torch.zeros(2, 16, dtype=torch.int64), tmp_path / "model.onnx", opset)


@pytest.mark.parametrize("norm_first, batch_first", [(True, True), (False, False)])
def test_encoders_of_pytorch(norm_first, batch_first, tmp_path):
    torch = pytest.importorskip("torch")
    import transformers
    same(transformers.Encoder(norm_first, batch_first), torch.zeros(2, 16, dtype=torch.int64), tmp_path / "m.onnx")


def test_random_modules(tmp_path):
    pytest.importorskip("torch")
    from test_torch import count, random_module
    draw = random.Random(20181029)
    for index in range(15):
        module, sample = random_module(draw)
        network = paceline.from_onnx(exported(module, sample, tmp_path / f"{index}.onnx"))
        assert network.parameters == count(module)
        assert network.forward_flops == paceline.from_torch(module, sample).forward_flops


def model(nodes, shape=(1, 3, 8, 8), weights=(), out=(1, 4)):
    value = helper.make_tensor_value_info
    tensors = [helper.make_tensor(name, TensorProto.FLOAT, dims, [0.0] * length(dims)) for name, dims in weights]
    graph = helper.make_graph(nodes, "graph", [value("x", TensorProto.FLOAT, shape)],
                              [value("y", TensorProto.FLOAT, out)], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def length(dims):
    total = 1
    for size in dims:
        total *= size
    return total


def test_operators_without_a_layer_are_listed_in_one_error():
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
             helper.make_node("Sin", ["a"], ["b"], name="sine"),
             helper.make_node("Relu", ["b"], ["c"], name="relu"),
             helper.make_node("Cos", ["c"], ["y"], name="cosine")]
    with pytest.raises(paceline.InputError) as caught:
        paceline.from_onnx(model(nodes, weights=[("w", (4, 3, 3, 3))], out=(1, 4, 6, 6)))
    assert "Cos (cosine), Sin (sine)" in str(caught.value) and "Relu" not in str(caught.value)


def test_a_product_and_its_bias_are_one_layer():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], name="full"),
             helper.make_node("Add", ["a", "b"], ["y"], name="bias")]
    network = paceline.from_onnx(model(nodes, (1, 32), [("w", (32, 4)), ("b", (4,))]))
    assert network.parameters == 32 * 4 + 4 and list(network.layers["kind"]) == ["fully_connected",
                                                                                 "softmax_cross_entropy"]


def test_what_is_no_model(tmp_path):
    path = tmp_path / "model.onnx"
    draw = random.Random(7)
    for size in (0, 1, 100, 10_000):
        path.write_bytes(draw.randbytes(size))
        with pytest.raises(paceline.InputError):
            paceline.from_onnx(path)
    with pytest.raises(paceline.InputError, match="no-such"):
        paceline.from_onnx(tmp_path / "no-such.onnx")


def test_cut_models_never_crash(tmp_path):
    whole = model([helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
                   helper.make_node("GlobalAveragePool", ["a"], ["p"], name="pool"),
                   helper.make_node("Flatten", ["p"], ["y"], name="flat")],
                  weights=[("w", (4, 3, 3, 3))]).SerializeToString()
    draw, path = random.Random(11), tmp_path / "model.onnx"
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(bytes(data[:draw.randint(1, len(data))]))
        try:
            paceline.from_onnx(path)
        except paceline.InputError:
            pass


def test_changed_transformers_never_crash(tmp_path):
    """Bytes that change, sizes that do not fit, operators in each other's place: a network or one line."""
    torch = pytest.importorskip("torch")
    import transformers
    whole = onnx.load(exported(transformers.Gpt(layers=1), torch.zeros(1, 16, dtype=torch.int64), tmp_path / "m.onnx"))
    draw, names = random.Random(13), [node.op_type for node in whole.graph.node]
    refused = 0
    for _ in range(120):
        model = onnx.ModelProto()
        model.CopyFrom(whole)
        for _ in range(draw.randint(1, 3)):
            node = draw.choice(model.graph.node)
            change = draw.randrange(5)
            if change == 0 and node.input:
                node.input[draw.randrange(len(node.input))] = draw.choice(["", "x", "none", *draw.choice(model.graph.node).output])
            elif change == 1:
                node.op_type = draw.choice([*names, "Einsum", "Pad", "LayerNormalization", "ReduceL2", "Conv", "MaxPool"])
            elif change == 2:
                for attribute in node.attribute:
                    attribute.i = draw.choice([-9, -1, 0, 1, 2, 3, 1 << 40])
                    for place in range(len(attribute.ints)):
                        attribute.ints[place] = draw.choice([-3, -1, 0, 1, 2, 7, 1 << 50])
            elif change == 3:
                tensor = draw.choice(model.graph.initializer)
                tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice([-1, 0, 1, 3, 1 << 40])
            else:
                node.ClearField("attribute")
        try:
            paceline.from_onnx(model)
        except paceline.InputError as error:
            assert "\n" not in str(error) and "internal" not in str(error)
            refused += 1
    assert refused > 40
