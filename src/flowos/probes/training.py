"""Training of ResNet-50: where its time goes, by how images are loaded, and over nodes.

After figures 7 to 11 and tables 4 and A.1 to A.3 of Serizawa and Tatebe, IPSJ SIG HPC, 2019: files
on shared storage (--scratch), a copy of them on the node's own (/var/tmp, or what the pool names),
and files on shared storage through a cache on the node's own. Between nodes of a pool 1, 2, 4 .. of
them train the same images (strong scaling), or as many each (weak). On processors network and
images are small. After each epoch images that are not trained are classified, as in figure 13 of
the paper on ABCI.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flowos._dataclasses import replace
from flowos.model import (
    Argv,
    Case,
    Chart,
    Facts,
    Measurement,
    MeasurementRequest,
    Outcome,
    Reading,
    Tool,
    Unmeasured,
)
from flowos.probes._base import (
    ComparedCase,
    Headline,
    Probe,
    ProbeInfo,
    Program,
    compared_case,
    read_answer,
    with_details,
)
from flowos.probes._cores import core_sets, doubled, options_of
from flowos.probes._env_charts import env_bars
from flowos.probes._gpu import HOST, NO_TORCH, START_SECONDS
from flowos.probes._scaling import scaling_over_nodes
from flowos.probes._storage import MORE_ROOM, NO_MPI

RANKS_ON_HOST = 2
VALIDATION_IMAGES = 64
LOADERS = ("shared", "local copy", "feed")
"""DataLoader of shared files, DataLoader of a copy, fo.Feed of shared files with an empty cache."""


class TrainingSetting(NamedTuple):
    """images: of a rank in an epoch, of the small network."""

    images: int
    epochs: int


SETTINGS = {
    "quick": TrainingSetting(64, 2),
    "normal": TrainingSetting(512, 3),
    "full": TrainingSetting(2048, 10),
}


class Network(NamedTuple):
    """words: options of the program. side: of the images' files. times: how many more images are
    trained. rate: images of a rank in a second, which is assumed, as are the bytes of a file.
    """

    words: str
    side: int
    times: int
    rate: float
    file_bytes: int


SMALL = Network("--batch 16 --size 32 --width 8 --blocks 1,1,1,1", 64, 1, 120.0, 3000)
RESNET50 = Network("--batch 32 --amp --channels-last", 256, 6, 250.0, 30_000)
WORKERS = (2, 8)
"""Of DataLoader for each rank: as the paper, and as many as are given of the cores."""


EVERY_RANK = "In each every rank trains a batch."
SCALINGS = ("strong", "weak")
OVER = ("scaling", "nodes")


def _over_nodes(title: str, metrics: tuple[str, ...], unit: str, about: str) -> Chart:
    return Chart(
        title=f"{title} over nodes",
        kind="curve",
        x="nodes",
        metrics=metrics,
        series=("loader",),
        facets=("scaling",),
        x_label="nodes",
        y_label=unit,
        log_x=True,
        ceilings=False,
        about=about,
    )


def _bars(title: str, metrics: tuple[str, ...], unit: str, about: str = "") -> Chart:
    return Chart(
        title=title,
        kind="bars",
        x="loader",
        metrics=metrics,
        facets=OVER,
        y_label=unit,
        ceilings=False,
        about=about,
    )


def _over_epochs(title: str, metrics: tuple[str, ...], unit: str, about: str) -> Chart:
    return Chart(
        title=f"{title} over epochs",
        kind="curve",
        x="epoch",
        metrics=metrics,
        series=("loader",),
        facets=OVER,
        x_label="epoch",
        y_label=unit,
        ceilings=False,
        about=about,
    )


class ResNetTraining(Probe):
    """Metrics images_per_second (1/s), training, training_with_copy, file_copy, stage and load
    (second), iterations, iterations_per_second (1/s), reads and node_reads (byte/s), other_share,
    train_top1, validation_top1 and elapsed (second); only if it is named.

    The program sweeps loader: see `LOADERS`.
    """

    info = ProbeInfo(
        name="training",
        title="Training of ResNet-50 (PyTorch)",
        charts=(
            _bars(
                "Images trained", ("images_per_second",), "1/s", "Of all ranks, without validation."
            ),
            _bars(
                "Time of all epochs",
                ("training", "training_with_copy", "file_copy"),
                "second",
                "Without validation; the images are copied before the first epoch, where they are.",
            ),
            Chart(
                title="Stages of an epoch",
                kind="bars",
                x="epoch",
                metrics=("stage",),
                series=("stage",),
                facets=("loader", *OVER),
                y_label="second",
                ceilings=False,
                about="The mean of the ranks. Copy is that of a batch to the device. On a GPU a"
                " stage is what its stream was busy with, or waited for.",
            ),
            Chart(
                title="Share of other work",
                kind="bars",
                x="epoch",
                metrics=("other_share",),
                series=("loader",),
                facets=OVER,
                ceilings=False,
            ),
            Chart(
                title="Loading, the sum of all ranks",
                kind="bars",
                x="part",
                metrics=("load",),
                series=("loader",),
                facets=OVER,
                y_label="second",
                log_y=True,
                ceilings=False,
                about="How long training waited for a batch.",
            ),
            _over_epochs(
                "Accuracy",
                ("train_top1", "validation_top1"),
                "share of images",
                "Of made images in few classes, which are learnt in some epochs: that it is learnt"
                " at all, and by which loader, not how well.",
            ),
            _over_epochs(
                "Time since the beginning",
                ("elapsed",),
                "second",
                "At the end of the epoch, validation included.",
            ),
            _bars("Images read", ("reads",), "byte/s", "Bytes of all trained files over the time."),
            _over_nodes(
                "Time of all epochs",
                ("training", "training_with_copy"),
                "second",
                "The same images in all: strong scaling; as many on each node: weak. With copy:"
                " each node copies all images first, where they are copied.",
            ),
            _over_nodes(
                "Images trained", ("images_per_second",), "1/s", "Of all ranks of all nodes."
            ),
            _over_nodes(
                "Images read by each node",
                ("node_reads",),
                "byte/s",
                "Bytes of all trained files over the time and the nodes.",
            ),
            _bars("Iterations per second", ("iterations_per_second",), "1/s", EVERY_RANK),
            _over_nodes("Iterations of all epochs", ("iterations",), "iterations", EVERY_RANK),
            _over_nodes("Iterations per second", ("iterations_per_second",), "1/s", EVERY_RANK),
        ),
        headlines=(
            Headline("Training, fo.Feed", "images_per_second", (("loader", "feed"),)),
            Headline("Training, DataLoader", "images_per_second", (("loader", "shared"),)),
        ),
        deciding=("images_per_second",),
        env_charts=(env_bars("Images trained", "loader", "images_per_second", (), "1/s"),),
        own_python=True,
        between_nodes="named",
        on_storage=True,
        on_own_storage=True,
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        if self.name not in request.probes:
            return ()
        python = facts.tool("torch")
        if python is None:
            return NO_TORCH
        if request.nodes > 1 and not facts.mpis:
            return NO_MPI
        cases = tuple(_cases(facts, request, python))
        needed, free = _needed_bytes(cases), facts.storage.free_bytes
        if free is not None and free < needed:
            return Unmeasured(
                reason=f"{request.scratch} has {free >> 20} MiB free; {needed >> 20} are needed",
                remedy=MORE_ROOM,
            )
        return cases

    def compared(
        self, facts: Facts, request: MeasurementRequest
    ) -> tuple[ComparedCase, ...] | Unmeasured:
        """The fewest images, on all nodes, by the PyTorch of each environment."""
        cases = self.cases(facts, replace(request, effort="quick"))
        if isinstance(cases, Unmeasured):
            return cases
        axes = ("device", "ranks", "nodes", "scaling")
        return tuple(
            compared_case(self, case, axes, f"PyTorch {case.detail('torch')}")
            for case in cases[-1:]
        )

    def seconds(self, case: Case) -> float:
        images, epochs, ranks = (float(case.detail(n)) for n in ("images", "epochs", "ranks"))
        each = images * epochs / (ranks * _nodes(case)) / _network(case).rate
        return 1.5 * START_SECONDS + len(LOADERS) * each

    def program(self, case: Case) -> Program:
        network, ranks, nodes = _network(case), int(case.detail("ranks")), _nodes(case)
        on_host = case.level("device") == HOST
        return Program(
            argv=(
                *(case.detail("python"), "--folder", "{scratch}", "--own", "{own}"),
                *("--side", str(network.side)),
                *options_of(case, "ranks", "epochs", "images", "validation", "workers"),
                *("--device", case.level("device"), "--threads", "1" if on_host else "0"),
                *network.words.split(),
                *(("--nodes", str(nodes)) if nodes > 1 else ()),
            ),
            script="torch_training.py",
            variables=(("GLOO_SOCKET_IFNAME", "lo"),) if nodes == 1 else (),
            cores=ranks if on_host else int(case.detail("cores", "1")),
            ranks=nodes,
            mpi_family=case.detail("family") if nodes > 1 else "",
            mpirun=case.detail("mpirun") if nodes > 1 else "",
            limit_seconds=180 + 10 * self.seconds(case),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        return read_answer(outcome, "train.py")

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        return tuple(
            line
            for scaling in SCALINGS
            for line in scaling_over_nodes(
                [m for m in measured if m.case.level("scaling") == scaling],
                "training",
                ("scaling", "loader"),
                weak=scaling == "weak",
            )
        )

    def left_out(
        self, measured: Sequence[Measurement], of_pool: Argv = ()
    ) -> tuple[tuple[Case, Unmeasured], ...]:
        """The feed, where the Python that has PyTorch has no FlowOS."""
        ours = [m.case for m in measured if m.case.probe == self.name]
        if not ours or any(case.level("loader") == "feed" for case in ours):
            return ()
        python = ours[0].detail("python")
        why = Unmeasured(
            reason=f"{python}, which has PyTorch, has no fo.Feed",
            remedy=f"install FlowOS for {python}, or PyTorch for the Python of FlowOS",
        )
        return ((Case(self.name, (("loader", "feed"),)), why),)


def _network(case: Case) -> Network:
    return SMALL if case.level("device") == HOST else RESNET50


def _nodes(case: Case) -> int:
    return int(case.level("nodes", "1"))


def _needed_bytes(cases: Sequence[Case]) -> int:
    """Of the images of all, which stay for the next one, and of a copy of the most."""
    sets = {
        (int(case.detail("images")), int(case.detail("ranks")) * _nodes(case)) for case in cases
    }
    files = sum(train + max(VALIDATION_IMAGES, ranks) for train, ranks in sets) + max(sets)[0]
    return files * _network(cases[0]).file_bytes


def _cases(facts: Facts, request: MeasurementRequest, python: Tool) -> Iterator[Case]:
    """On this machine one; between nodes over their number. Quick: strong scaling alone."""
    setting, cores = SETTINGS[request.effort], len(core_sets(facts)[-1])
    ranks = len(facts.cuda) or min(RANKS_ON_HOST, cores)
    each = ranks * setting.images * (RESNET50 if facts.cuda else SMALL).times
    case = Case(
        "training",
        levels=(("device", "cuda" if facts.cuda else HOST), ("ranks", str(ranks))),
        details=(
            ("python", str(python.path)),
            ("torch", python.version),
            ("ranks", str(ranks)),
            ("epochs", str(setting.epochs)),
            ("images", str(each)),
            ("validation", str(VALIDATION_IMAGES)),
            ("workers", str(sorted((*WORKERS, cores // ranks))[1])),
        ),
    )
    if request.nodes == 1:
        yield case
        return
    mpi = facts.mpis[0]
    for scaling in SCALINGS[:1] if request.effort == "quick" else SCALINGS:
        for nodes in doubled(request.nodes):
            images = each * (request.nodes if scaling == "strong" else nodes)
            yield with_details(
                case.at(nodes=str(nodes), scaling=scaling),
                images=str(images),
                cores=str(cores),
                family=mpi.family,
                mpirun=str(mpi.mpirun),
            )
