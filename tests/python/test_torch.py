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


IMPORTED = ("alexnet", "densenet", "googlenet", "inception_v3", "mnasnet", "mobilenet_v2", "regnet_x_", "resnet",
            "resnext", "squeezenet", "vgg", "wide_resnet")


@pytest.mark.skipif("PACELINE_SLOW" not in os.environ, reason="five minutes: ctest -C slow runs it")
def test_every_model_of_these_families_has_an_exact_total(models, monkeypatch):
    for name in [name for name in dir(torch.nn.init) if name.endswith("_") and not name.startswith("_")]:
        monkeypatch.setattr(torch.nn.init, name, lambda tensor, *more, **named: tensor)
    names = [name for name in models.list_models(module=models) if name.startswith(IMPORTED)]
    assert len(names) == 39
    for name in names:
        heads = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
        module = getattr(models, name)(weights=None, **heads)
        network = paceline.from_torch(module, images(299 if name == "inception_v3" else 224))
        assert network.parameters == count(module), name


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
            return torch.fft.fft(self.fold(self.conv(self.up(x)))).abs() * 2

    with pytest.raises(paceline.InputError) as caught:
        paceline.from_torch(Odd(), images(8))
    for operator in ("Upsample (up)", "PixelShuffle (fold)", "fft_fft", "abs", "mul"):
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

    with pytest.raises(paceline.InputError, match="add of different shapes"):
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


def test_control_flow_is_refused():
    class Branches(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(paceline.InputError, match="torch.fx cannot trace it"):
        paceline.from_torch(Branches(), images(8))
