"""Networks from PyTorch: the same layers as the zoo's, exact totals, and one error for what has no layer."""

import os
import random

import numpy as np
import pytest

import paceline

torch = pytest.importorskip("torch")
nn = torch.nn


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def images(size=224, channels=3):
    return torch.zeros(1, channels, size, size)


@pytest.mark.parametrize("name", ["resnet50", "resnet101"])
def test_a_resnet_is_the_zoos(models, name):
    network, ours = paceline.from_torch(getattr(models, name)(), images(), name=name), paceline.Network.load(name)
    assert np.array_equal(network.gradients, ours.gradients)  # names and sizes, in the order of backward
    assert network.forward_flops == ours.forward_flops
    for field in ("output", "parameters", "forward_flops", "kept_elements"):
        assert list(network.layers[field]) == list(ours.layers[field])
    asked = {"cluster": "jizhi-p40", "ranks": 64, "strategy": "hybrid", "profile": None}
    assert paceline.predict(network, **asked).best.plan.buckets.tolist() == \
        paceline.predict(ours, **asked).best.plan.buckets.tolist()


def products(module, sample):
    """FLOPs of the products that PyTorch itself computes: convolutions, and matrices by matrices, a
    multiply-add as 2. It is counted below Python's functions, where nothing of Paceline is."""
    from torch.utils._python_dispatch import TorchDispatchMode
    total = [0]

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result, name = function(*args, **(kwargs or {})), str(function)
            if "convolution" in name:
                total[0] += 2 * result.numel() * args[1][0].numel()
            elif name.startswith(("aten.mm", "aten.bmm", "aten.addmm", "aten.baddbmm")):
                total[0] += 2 * result.numel() * args[-1].shape[-2]
            elif "scaled_dot_product" in name:
                total[0] += 4 * args[0].numel() * args[1].shape[-2]
            return result

    with torch.no_grad(), Count():
        module.eval().to("meta")(sample.to("meta"))
    return total[0]


def check(module, sample, name):
    """What a network must have of its module: all parameters, and the FLOPs of its products."""
    network = paceline.from_torch(module, sample)
    assert network.parameters == count(module), name
    names = {key for key, _ in module.named_parameters()}
    gradients = [gradient for gradient in network.gradients["name"] if ".." not in gradient]  # shortened
    assert all(g in names or f"{g}.weight" in names or g.replace("_proj.", "_proj_") in names for g in gradients), name
    assert abs(network.forward_flops * len(sample) / products(module, sample) - 1) < 0.01, name
    return network


@pytest.mark.skipif("PACELINE_SLOW" not in os.environ, reason="half a minute: ctest -C slow runs it")
def test_every_model_has_exact_totals(models, monkeypatch):
    for name in [name for name in dir(torch.nn.init) if name.endswith("_") and not name.startswith("_")]:
        monkeypatch.setattr(torch.nn.init, name, lambda tensor, *more, **named: tensor)
    names = models.list_models(module=models)
    assert len(names) == 80
    for name in names:
        heads = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
        module = getattr(models, name)(weights=None, **heads)
        check(module, images(299 if name == "inception_v3" else 224), name)


@pytest.mark.parametrize("name", ["convnext_tiny", "efficientnet_b0", "maxvit_t", "mobilenet_v3_small",
                                  "regnet_y_400mf", "shufflenet_v2_x0_5", "swin_t", "swin_v2_t", "vit_b_16"])
def test_models_with_attention_products_and_windows(models, name):
    network = check(getattr(models, name)(), images(), name)
    assert paceline.Network.from_yaml(network.to_yaml()) == network
    # What has no sequence is no network of sequences, though its layers have them.
    assert "sequence" not in network.document


@pytest.mark.parametrize("name, parameters", [
    ("alexnet", 61_100_840), ("vgg11", 132_863_336), ("vgg16_bn", 138_365_992), ("resnet18", 11_689_512),
    ("resnext50_32x4d", 25_028_904), ("wide_resnet50_2", 68_883_240), ("squeezenet1_1", 1_235_496),
    ("densenet121", 7_978_856), ("mobilenet_v2", 3_504_872), ("mnasnet0_5", 2_218_512),
    ("regnet_x_400mf", 5_495_976)])
def test_totals_of_torchvision(models, name, parameters):
    module = getattr(models, name)()
    network = paceline.from_torch(module, images())
    assert network.parameters == count(module) == parameters
    assert paceline.Network.from_yaml(network.to_yaml()) == network


def test_inception_without_its_auxiliary_head(models):
    module = models.inception_v3(aux_logits=False, init_weights=False)
    network = paceline.from_torch(module, images(299))
    assert network.parameters == count(module) == paceline.Network.load("inception-v3").parameters


def test_parameters_that_no_layer_has_are_named(models):
    module = models.googlenet(aux_logits=True, init_weights=False)
    with pytest.raises(paceline.InputError, match=r"no layer has aux1\.conv\.conv\.weight"):
        paceline.from_torch(module, images())


def test_operators_without_a_layer_are_listed_in_one_error():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.conv, self.fold = nn.Upsample(scale_factor=2), nn.Conv2d(3, 4, 3), nn.PixelShuffle(2)

        def forward(self, x):
            return torch.fft.fft(self.fold(self.conv(self.up(x))))

    with pytest.raises(paceline.InputError) as caught:
        paceline.from_torch(Odd(), images(8))
    for operator in ("Upsample (up)", "PixelShuffle (fold)", "fft_fft"):
        assert operator in str(caught.value)
    assert "Conv2d" not in str(caught.value)


def random_module(draw, kinds=("conv", "norm", "relu", "pool", "drop", "gelu")):
    """A module of random layers of these kinds, and its input."""
    channels, size, layers = draw.randint(1, 4), draw.choice([16, 17, 32]), []
    start, now = channels, size
    for _ in range(draw.randint(1, 6)):
        kind = draw.choice(kinds)
        if kind == "conv":
            groups = draw.choice([g for g in (1, 2, 3) if channels % g == 0])
            kernel, stride = draw.choice([1, 3]), draw.choice([1, 1, 2])
            out = groups * draw.randint(1, 5)
            layers.append(nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups,
                                    bias=draw.random() < 0.5))
            channels, now = out, (now - 1) // stride + 1
        elif kind == "pool" and now >= 4:
            layers.append(draw.choice([nn.MaxPool2d, nn.AvgPool2d])(2, ceil_mode=draw.random() < 0.5))
            now = -(-now // 2) if layers[-1].ceil_mode else now // 2
        else:
            layers.append({"norm": nn.BatchNorm2d(channels), "drop": nn.Dropout(0.3),
                           "gelu": nn.GELU()}.get(kind, nn.ReLU()))
    layers += [nn.Flatten(), nn.Linear(channels * now * now, 7), nn.Linear(7, draw.randint(2, 9), bias=False)]
    return nn.Sequential(*layers), torch.zeros(2, start, size, size)


def test_random_modules():
    draw = random.Random(20181028)
    for _ in range(40):
        module, sample = random_module(draw)
        network = paceline.from_torch(module, sample)
        assert network.parameters == count(module)
        assert network.layers["output"][-2] == str(module(sample).shape[1])
        # Gradients are the module's parameters, last first.
        assert list(network.gradients["name"]) == [name for name, _ in reversed(list(module.named_parameters()))]


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_transformer(norm_first):
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(1000, 64)
            layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, activation="gelu", norm_first=norm_first)
            self.encoder = nn.TransformerEncoder(layer, 3, norm=nn.LayerNorm(64))
            self.head = nn.Linear(64, 1000, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, x):
            return self.head(self.encoder(self.tokens(x)))

    module = Encoder()
    network = paceline.from_torch(module, torch.zeros(2, 32, dtype=torch.int64))
    assert network.parameters == count(module)  # the tied table counts once
    assert network.document["sequence"] == 32
    assert list(network.layers["kind"]).count("attention") == 3


def test_positions_are_added_to_tokens():
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions, self.head = nn.Embedding(50, 8), nn.Embedding(16, 8), nn.Linear(8, 50)

        def forward(self, x):
            return self.head(self.positions(torch.arange(16)) + self.tokens(x))

    module = Tokens()
    network = paceline.from_torch(module, torch.zeros(3, 16, dtype=torch.int64))
    assert network.parameters == count(module)
    assert list(network.layers["kind"]) == ["embedding", "embedding", "add", "linear", "softmax_cross_entropy"]

    class Other(Tokens):
        def forward(self, x):
            return self.head(self.tokens(x) + self.tokens.weight[0])

    with pytest.raises(paceline.InputError, match="add of a parameter"):
        paceline.from_torch(Other(), torch.zeros(3, 16, dtype=torch.int64))


def test_the_module_is_not_changed():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 2)).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    paceline.from_torch(module, torch.randn(4, 3, 8, 8))
    assert module.training and all(torch.equal(before[name], value) for name, value in module.state_dict().items())


@pytest.mark.parametrize("sample", [torch.zeros(3), "images", torch.zeros(1, 3, 4, 4, 4)])
def test_wrong_samples(sample):
    with pytest.raises(paceline.InputError):
        paceline.from_torch(nn.Flatten(), sample)


def test_branches_on_numbers_are_refused():
    class Branches(nn.Module):
        def forward(self, x):
            return x if (x > 0).all() else -x

    with pytest.raises(paceline.InputError, match="bool reads a number that depends on the sample"):
        paceline.from_torch(Branches(), images(8))


def test_branches_on_shapes_and_constants_are_taken():
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.register = nn.Conv2d(3, 4, 3), self.register_buffer("one", torch.ones(1))

        def forward(self, x):
            samples, channels, height, width = x.shape
            x = self.conv(x) if height > 4 and self.one.item() > 0 else x
            return x.reshape(samples, -1)

    network = paceline.from_torch(Branches(), images(8))
    assert list(network.layers["kind"]) == ["convolution", "flatten", "softmax_cross_entropy"]


class Backward:
    """The order in which a backward pass completes the gradients of a module's layers."""

    def __init__(self, module, sample):
        self.order = []
        for name, parameter in module.named_parameters():
            parameter.register_hook(lambda gradient, name=name: self.order.append(name.rpartition(".")[0] or name))
        module.train()(sample).sum().backward()


@pytest.mark.parametrize("name", ["swin_t", "vit_b_16", "convnext_tiny"])
def test_gradients_come_in_the_order_of_the_backward_pass(models, name):
    torchvision = pytest.importorskip("torchvision")
    if name == "swin_t":
        module = torchvision.models.SwinTransformer([4, 4], 12, [1, 1], [1, 2], [7, 7], num_classes=5)
    elif name == "vit_b_16":
        module = torchvision.models.VisionTransformer(56, 8, 2, 2, 12, 24, num_classes=5)
    else:
        from torchvision.models.convnext import CNBlockConfig, ConvNeXt
        module = ConvNeXt([CNBlockConfig(12, 24, 1), CNBlockConfig(24, None, 1)], num_classes=5)
    sample = images(56)
    network = paceline.from_torch(module, sample)

    def layers(names):  # each layer's weight and bias are ready at once
        return list(dict.fromkeys(names))

    learned = {"class_token", "pos_embedding", "layer_scale", "relative_position_bias_table"}
    ours = layers(g if g.rpartition(".")[2] in learned else g.rpartition(".")[0] for g in network.gradients["name"])
    hooks = Backward(module, sample)
    names = {key.rpartition(".")[0]: key for key, _ in module.named_parameters() if key.rpartition(".")[2] in learned}
    seen = []
    for layer in hooks.order:
        seen.append(names.get(layer, layer))
    if name == "vit_b_16":  # PyTorch's attention has its first weights itself
        ours = layers(layer.removesuffix(".in_proj") for layer in ours)
        seen = layers(seen)
    assert ours == layers(seen)


def attention(split):
    """Attention that is written out, with queries, keys and values as ``split`` makes them."""
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.proj = nn.Linear(24, 72), nn.Linear(24, 24)

        def forward(self, x):
            q, k, v = split(self.qkv(x), *x.shape[:2])
            scores = (q @ k.transpose(-2, -1)) / 8 ** 0.5
            return self.proj((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(x.shape))

    return Attention()


SPLITS = {
    "chunk": lambda qkv, b, n: [part.view(b, n, 3, 8).transpose(1, 2) for part in qkv.chunk(3, dim=-1)],
    "split": lambda qkv, b, n: [part.view(b, n, 3, 8).permute(0, 2, 1, 3) for part in qkv.split(24, dim=2)],
    "unbind": lambda qkv, b, n: qkv.reshape(b, n, 3, 3, 8).permute(2, 0, 3, 1, 4).unbind(0),
    "index": lambda qkv, b, n: [qkv.view(b, n, 3, 3, 8)[:, :, i].transpose(1, 2) for i in range(3)],
    "slice": lambda qkv, b, n: [qkv[..., 24 * i:24 * i + 24].reshape(b, n, 3, 8).transpose(1, 2) for i in range(3)],
    "heads": lambda qkv, b, n: qkv.view(b, n, 3, 24).transpose(1, 2).chunk(3, dim=-1),
}


@pytest.mark.parametrize("split", SPLITS)
def test_attention_that_is_written_out(split):
    network = check(attention(SPLITS[split]), torch.zeros(2, 10, 24), split)
    assert list(network.layers["kind"]) == ["linear", "attention", "linear", "softmax_cross_entropy"]
    assert "heads: 3" in network.to_yaml()


def test_attention_as_one_function():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.proj = nn.Linear(24, 72), nn.Linear(24, 24)

        def forward(self, x):
            q, k, v = SPLITS["chunk"](self.qkv(x), *x.shape[:2])
            if hasattr(nn.functional, "scaled_dot_product_attention"):
                y = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)
            else:
                y, _ = nn.functional._scaled_dot_product_attention(q, k, v, None, 0.1, False, True)
            return self.proj(y.transpose(1, 2).flatten(2))

    network = check(Attention(), torch.zeros(2, 10, 24), "one function")
    assert "{name: scaled_dot_product_attention, kind: attention, heads: 3, causal: true, dropout: 0.1}" in \
        network.to_yaml()


def test_the_command_takes_what_is_imported(models, command, tmp_path):
    file, module = tmp_path / "vit.yaml", models.VisionTransformer(56, 8, 2, 2, 12, 24, num_classes=5)
    paceline.from_torch(module, images(56), name="vit").save(file)
    assert "vit on h200-ndr: 64 ranks" in command("predict", "--model", file, "--cluster", "h200-ndr", "--ranks", 64)
    shown = command("show", "network", file)
    assert "class_token" in shown and f"{count(module):,} parameters in" in shown
    refused = command("predict", "--model", file, "--cluster", "h200-ndr", "--ranks", 64, "--sequence", 50, code=2)
    assert refused == "paceline: --sequence: network 'vit' reads no sequence; leave the length of a sequence out\n"
    refused = command("train", "--model", file, "--data", "synthetic", code=2)
    assert "is of kind rearrange, which is not trained yet" in refused and refused.count("\n") == 1


def test_attention_over_other_keys_is_refused():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.full = nn.Linear(8, 8)

        def forward(self, x):
            y = self.full(x)
            return (y @ y[:, :4].transpose(1, 2)).softmax(-1) @ y[:, :4]

    with pytest.raises(paceline.InputError, match="matmul over other keys"):
        paceline.from_torch(Half(), torch.zeros(1, 8, 8))


def test_a_norm_or_an_activation_in_its_parts_is_one_layer():
    from transformers import RootMeanSquare

    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.root = nn.Linear(8, 8), RootMeanSquare(8)
            self.norm, self.last = nn.LayerNorm(8), nn.Linear(8, 4, bias=False)

        def forward(self, x):
            x = self.root(self.first(x))
            x = 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.04 * x ** 3)))
            centred = x - x.mean(-1, keepdim=True)
            x = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * self.norm.weight + self.norm.bias
            return self.last(x * torch.sigmoid(x))

    network = check(Parts(), torch.zeros(1, 6, 8), "parts")
    assert list(network.layers["kind"]) == ["linear", "layer_norm", "gelu", "layer_norm", "gelu", "linear",
                                            "softmax_cross_entropy"]


@pytest.mark.parametrize("name", ["Gpt", "Bert", "Encoder", "Llama"])
def test_transformers_in_plain_pytorch(name):
    import transformers
    network = check(getattr(transformers, name)(), torch.zeros(2, 16, dtype=torch.int64), name)
    kinds = list(network.layers["kind"])
    assert kinds.count("attention") == (1 if name == "Llama" else 2) and "scale" not in kinds
    assert ("causal: true" in network.to_yaml()) == (name == "Gpt")
    assert network.document["sequence"] == 16


def test_modules_of_a_users_own_are_what_they_call():
    class LayerNorm(nn.Module):
        def __init__(self, features):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(features))

        def forward(self, x):
            return nn.functional.layer_norm(x, self.weight.shape, self.weight, None, 1e-5)

    class DropPath(nn.Module):
        def __init__(self, drop_prob):
            super().__init__()
            self.drop_prob = drop_prob

        def forward(self, x):
            return x

    class Linear(nn.Linear):
        def forward(self, x):
            return nn.functional.gelu(super().forward(x))

    module = nn.Sequential(nn.Linear(8, 6), LayerNorm(6), DropPath(0.2), Linear(6, 3))
    network = check(module, torch.zeros(1, 5, 8), "own")
    assert list(network.layers["kind"]) == ["linear", "layer_norm", "stochastic_depth", "linear", "gelu",
                                            "softmax_cross_entropy"]
    assert list(network.gradients["name"]) == [name for name, _ in reversed(list(module.named_parameters()))]


def test_what_a_module_writes_into_is_refused():
    class Writes(nn.Module):
        def forward(self, x):
            x = x * 2
            x[:, 0] = 0
            return x.flatten(1)

    with pytest.raises(paceline.InputError, match=r"setitem \(setitem\)"):
        paceline.from_torch(Writes(), images(8))


def test_other_lengths_of_a_sequence():
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(50, 24), nn.Parameter(torch.zeros(1, 16, 24))
            self.attention, self.head = attention(SPLITS["unbind"]), nn.Linear(24, 50)

        def forward(self, x):
            return self.head(self.attention(self.tokens(x) + self.places))

    network = check(Tokens(), torch.zeros(1, 16, dtype=torch.int64), "tokens")
    asked = {"cluster": "jizhi-p40", "ranks": 8, "profile": None}
    short = paceline.predict(network, sequence=8, **asked).best.iteration_s
    assert short < paceline.predict(network, **asked).best.iteration_s
    with pytest.raises(paceline.InputError, match="'places': a sequence of 17, and a table of 16 positions"):
        paceline.predict(network, sequence=17, **asked)
    patches = paceline.from_torch(nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.Flatten(2)), images(16), loss=False)
    with pytest.raises(paceline.InputError, match="reads no sequence"):
        paceline.predict(patches, sequence=16, **asked)
