"""A narrow SiamRPN in Python torch, written from its table of layers: weights as torch.save writes them, and what they
answer. Makes ../data/siamese.pt and ../data/siamese.json.

Usage, with Debian's python3-torch 1.13: /usr/bin/python3 make_siamese.py
"""

import json
import math
from pathlib import Path

import torch
from torch import nn

DATA = Path(__file__).resolve().parent.parent / "data"
CHANNELS = [2, 4, 6, 6, 4, 4]  # the published numbers over 64
SIZES = [(104, 32), (88, 40), (64, 64), (40, 80), (32, 96)]


class SiamRPN(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.featureExtract = nn.Sequential(
            nn.Conv2d(3, c[0], 11, stride=2), nn.BatchNorm2d(c[0]), nn.MaxPool2d(3, stride=2), nn.ReLU(),
            nn.Conv2d(c[0], c[1], 5), nn.BatchNorm2d(c[1]), nn.MaxPool2d(3, stride=2), nn.ReLU(),
            nn.Conv2d(c[1], c[2], 3), nn.BatchNorm2d(c[2]), nn.ReLU(),
            nn.Conv2d(c[2], c[3], 3), nn.BatchNorm2d(c[3]), nn.ReLU(),
            nn.Conv2d(c[3], c[4], 3), nn.BatchNorm2d(c[4]))
        self.conv_r1 = nn.Conv2d(c[4], c[5] * 20, 3)
        self.conv_r2 = nn.Conv2d(c[4], c[5], 3)
        self.conv_cls1 = nn.Conv2d(c[4], c[5] * 10, 3)
        self.conv_cls2 = nn.Conv2d(c[4], c[5], 3)
        self.regress_adjust = nn.Conv2d(20, 20, 1)

    def forward(self, target, search):
        z, x = self.featureExtract(target), self.featureExtract(search)
        delta = nn.functional.conv2d(self.conv_r2(x), self.conv_r1(z).view(20, -1, 4, 4))
        score = nn.functional.conv2d(self.conv_cls2(x), self.conv_cls1(z).view(10, -1, 4, 4))
        return self.regress_adjust(delta)[0], score[0]


def wave(side, across, down):
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    return torch.stack([127.5 + 100 * torch.sin(across * x + down * y + c) for c in range(3)])[None].float()


def context(w, h):
    return math.sqrt((w + (w + h) / 2) * (h + (w + h) / 2))


def best_box(delta, score, left, top, width, height):
    """One proposal after the other, in plain numbers."""
    scale = 127 / context(width, height)
    best = (-1.0,)
    for a, (aw, ah) in enumerate(SIZES):
        for y in range(19):
            for x in range(19):
                d = [float(delta[k * 5 + a, y, x]) for k in range(4)]
                foreground = 1 / (1 + math.exp(float(score[a, y, x] - score[5 + a, y, x])))
                cx, cy = d[0] * aw + (x - 9) * 8, d[1] * ah + (y - 9) * 8
                w, h = aw * math.exp(d[2]), ah * math.exp(d[3])
                s = context(w, h) / context(width * scale, height * scale)
                r = (width / height) / (w / h)
                penalty = math.exp(-0.04 * (max(s, 1 / s) * max(r, 1 / r) - 1))
                hann = [0.5 - 0.5 * math.cos(2 * math.pi * k / 18) for k in (x, y)]
                value = foreground * penalty * 0.56 + hann[0] * hann[1] * 0.44
                if value > best[0]:
                    best = (value, foreground * penalty * 0.45, cx / scale, cy / scale, w / scale, h / scale)
    _, share, cx, cy, w, h = best
    w, h = width * (1 - share) + w * share, height * (1 - share) + h * share
    return [left + width / 2 + cx - w / 2, top + height / 2 + cy - h / 2, w, h]


torch.manual_seed(6)
model = SiamRPN(CHANNELS)
target, search = wave(127, 0.1, 0.2), wave(271, 0.07, 0.11)
with torch.no_grad():
    for layer in model.featureExtract:
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = None
            layer.weight.uniform_(0.5, 1.5)
            layer.bias.uniform_(-0.5, 0.5)
    model(target, search)  # statistics of these pictures, so that no layer dies
    model.eval()
    model.regress_adjust.weight *= 0.05  # offsets of a fraction of an anchor
    model.regress_adjust.bias *= 0.05
    delta, score = model(target, search)
last = [100, 50, 40, 90]
torch.save(model.state_dict(), DATA / "siamese.pt")
answer = {
    "last": last,
    "delta": [float(delta[k * 5 + a, y, x]) for k, a, y, x in [(0, 0, 0, 0), (1, 2, 9, 9), (2, 3, 4, 17), (3, 4, 18, 5)]],
    "delta_sum": float(delta.double().sum()),
    "foreground_sum": float(torch.sigmoid(score[5:].double() - score[:5].double()).sum()),
    "box": best_box(delta, score, *last),
}
(DATA / "siamese.json").write_text(json.dumps(answer, indent=1) + "\n")
print(answer, [float(delta.abs().max()), float(score.abs().max())])
