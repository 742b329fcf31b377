"""ResNet of bottleneck blocks (He et al., Deep Residual Learning for Image Recognition, CVPR 2016).

Version 1.5, as frameworks have it: the stride of a block is in its 3 x 3 convolution.
"""

from collections.abc import Sequence

from torch import Tensor, nn

EXPANSION = 4
RESNET50 = (3, 4, 6, 3)


def conv_norm(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return [conv, nn.BatchNorm2d(outputs)]


class Bottleneck(nn.Module):  # type: ignore[misc]
    """1 x 1, 3 x 3, 1 x 1, and what goes around them."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = EXPANSION * width
        self.body = nn.Sequential(
            *conv_norm(inputs, width, 1),
            nn.ReLU(inplace=True),
            *conv_norm(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *conv_norm(width, outputs, 1),
        )
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Sequential(*([] if same else conv_norm(inputs, outputs, 1, stride)))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.body(x) + self.shortcut(x))


class ResNet(nn.Module):  # type: ignore[misc]
    """Images (n, 3, height, width) to scores (n, classes).

    blocks: of each size of feature maps, each with twice the channels of the one before.
    width: channels of the stem. RESNET50 with width 64 and 1000 classes has 25,557,032 parameters.
    """

    def __init__(
        self, classes: int = 1000, *, blocks: Sequence[int] = RESNET50, width: int = 64
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [*conv_norm(3, width, 7, 2), nn.ReLU(inplace=True)]
        layers.append(nn.MaxPool2d(3, 2, 1))
        channels = width
        for level, count in enumerate(blocks):
            for number in range(count):
                stride = 2 if level > 0 and number == 0 else 1
                layers.append(Bottleneck(channels, width << level, stride))
                channels = EXPANSION * (width << level)
        self.features = nn.Sequential(*layers)
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classify = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        return self.classify(self.pool(self.features(x)))
