"""Numbers from the text and tables of Serizawa and Tatebe, IPSJ SIG HPC, 2019: "the paper".

A node of Cygnus: 2 x 12 cores, NVMe SSD, Lustre over InfiniBand; 1,261,197 photographs of
ImageNet. Values that its figures 4 to 6 show only as curves are left out.
"""

from collections.abc import Sequence

WHERE = "seed 002 (Cygnus)"

# Section 4.1, figure 4: (contestant, processes that make minibatches, seconds for 1,000 of 32)
FIGURE_4: Sequence[tuple[str, int, float]] = (
    ("Chainer on SSD", 2, 59.49),
    ("Chainer on SSD", 8, 37.74),
    ("Chainer on Lustre", 2, 480.85),
    ("Chainer on Lustre", 16, 116.35),
    ("its proposal", 2, 400.88),
)
# Table 2 and figure 5: (contestant, seconds to the first minibatch, to the thousandth), 2 processes
TABLE_2: Sequence[tuple[str, float, float]] = (
    ("Chainer on SSD", 4.38, 59.49),
    ("Chainer on Lustre", 4.77, 480.85),
    ("its proposal", 10.12, 400.88),
)
# Figure 6: its proposal, (processes that prefetch, seconds)
FIGURE_6: Sequence[tuple[int, float]] = ((2, 400.88), (12, 92.4))
# Table 3: (nodes, seconds to copy all files with 8 at once on each)
TABLE_3: Sequence[tuple[int, float]] = (
    (1, 1749.275),
    (2, 2031.625),
    (4, 1575.716),
    (8, 1592.248),
    (16, 1612.894),
)
TABLE_3_FILES = 1_261_197
# Figures 7 and 8, tables A.1 to A.3: (contestant, nodes, seconds for 10 epochs of ResNet-50)
FIGURE_7: Sequence[tuple[str, int, float]] = (
    ("Chainer on SSD", 1, 14339.98),
    ("Chainer on SSD", 2, 7924.18),
    ("Chainer on SSD", 4, 6716.36),
    ("Chainer on SSD", 8, 5294.47),
    ("Chainer on SSD", 16, 1938.19),
    ("Chainer on Lustre", 1, 45586.36),
    ("Chainer on Lustre", 2, 20388.48),
    ("Chainer on Lustre", 4, 9293.58),
    ("Chainer on Lustre", 8, 5290.22),
    ("Chainer on Lustre", 16, 2055.71),
    ("its proposal", 1, 15878.37),
    ("its proposal", 2, 9009.86),
    ("its proposal", 4, 7363.48),
    ("its proposal", 8, 6585.40),
    ("its proposal", 16, 3008.96),
)
