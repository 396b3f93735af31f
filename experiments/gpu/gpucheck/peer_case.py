"""Trains a network of torchvision by PyTorch on one GPU, eagerly, on images that stay on the device:

    peer_case.py NETWORK BATCH fp16|bf16...

Prints a line of JSON for each storage type: the median of 30 iterations between CUDA events, behind 12 that warm up. Convolutions
are by the engines that cuDNN's benchmark mode found fastest, in channels_last.
"""
import json
import statistics
import sys

import torch
import torchvision

WARM, TIMED = 12, 30


def time_iterations(name, batch, storage):
    network = getattr(torchvision.models, name)().cuda().train().to(memory_format=torch.channels_last)
    images = torch.randn(batch, 3, 224, 224, device="cuda").contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-5)
    scaler = torch.amp.GradScaler("cuda", enabled=storage == torch.float16)
    loss = torch.nn.CrossEntropyLoss()

    def iterate():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=storage):
            value = loss(network(images), labels)
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()

    for _ in range(WARM):
        iterate()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(TIMED + 1)]
    marks[0].record()
    for mark in marks[1:]:
        iterate()
        mark.record()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in zip(marks, marks[1:]))


def main():
    name, batch = sys.argv[1], int(sys.argv[2])
    torch.backends.cudnn.benchmark = True
    for storage in sys.argv[3:]:
        ms = time_iterations(name, batch, {"fp16": torch.float16, "bf16": torch.bfloat16}[storage])
        print(json.dumps({"network": name, "batch": batch, "storage": storage, "median_ms": ms, "images_per_s": batch / ms * 1e3,
                          "torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}), flush=True)


main()
