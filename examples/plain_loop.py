"""UMIX in a plain PyTorch loop: record the trajectory of a first fit, weigh the examples by it, train again on weighted mixtures.

Run: python examples/plain_loop.py

The data are any map-style dataset; here digits in two colours, where the colour agrees with the label in 95 % of the training
examples. Under torchrun or Accelerate the same lines work: each process sees its share of the examples, and
``trajectory.gather()`` brings them together.
"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import umix

torch.manual_seed(0)
torch.set_num_threads(1)  # a net as small as this one is slower with several
task = umix.load_task("colored_digits")
train, test = task.splits["train"], task.splits["test"]
dataset = umix.IndexedDataset(TensorDataset(train.x, train.y))  # (x, y) becomes (x, y, index)
loader = DataLoader(dataset, batch_size=64, shuffle=True)


def new_net() -> tuple[nn.Module, torch.optim.Optimizer]:
    net = nn.Sequential(nn.Flatten(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
    return net, torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


# Stage 1: an ordinary fit that records which examples it gets wrong.
net, optimizer = new_net()
trajectory = umix.Trajectory(len(dataset))
for _ in range(10):
    for x, y, index in loader:
        logits = net(x)
        trajectory.see(index, logits, y)  # no second pass, no waiting for the device
        loss = cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    trajectory.gather()  # only does something in several processes
    trajectory.end_epoch()
print("ERM", umix.group_counts(net(test.x), test.y, test.groups), sep="\n")

# Stage 2: a new net on weighted mixtures of examples.
net, optimizer = new_net()
mixup = umix.WeightedMixup(trajectory.weights(eta=20), sigma=1.0, alpha=0.5)
for _ in range(40):
    for x, y, index in loader:
        loss = mixup(net, x, y, index)  # or: inputs, loss_of = mixup.mix(x, y, index); loss = loss_of(net(inputs))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    mixup.end_epoch()
print("\nUMIX", umix.group_counts(net(test.x), test.y, test.groups), sep="\n")
