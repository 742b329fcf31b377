"""Serizawa and Tatebe: training data read from shared storage through the node's own."""

from flowos.model import FigurePart, PaperFigure, PaperSuite

_INSTEAD = (
    "generated files of ImageNet's usual size in --scratch, where one disk is both the shared"
    " storage and the node's own: a cache can gain little there. Threads read, not processes"
)
_TRAINED_BY = (
    ", or a small network by two of its processors, in place of 1,261,197 photographs on up to 16"
    " nodes; 10 epochs with --full; PyTorch's DataLoader and fo.Feed, in place of Chainer"
)
_TRAINED = "made images by all GPUs of this node" + _TRAINED_BY
_TRAINED_ON_POOL = (
    "made images by all GPUs of each of 1, 2, 4 .. nodes of the pool, as many in all (strong"
    " scaling) and, but with --quick, as many on each (weak)"
) + _TRAINED_BY
_IN_DETAIL = (
    "training",
    "iterations",
    "iterations_per_second",
    "images_per_second",
    "reads",
    "node_reads",
)
_WARM = (
    ". `flowos feed warm SOURCE --cache FOLDER` copies a data set of yours, and says how long it"
    " took"
)


def _trained(loader: str, *metrics: str) -> tuple[FigurePart, ...]:
    """loader: "" is all."""
    levels = (("loader", loader),) if loader else ()
    return (FigurePart(probe="training", metrics=metrics, levels=levels),)


READS = PaperSuite(
    name="reads",
    title="Reads of training data, staged through the node's own storage",
    figures=(
        PaperFigure(
            number="4",
            title="1,000 minibatches of 32 files, over processes that read",
            caption="1,000 ミニバッチ生成ベンチマークの全評価結果",
            parts=(FigurePart(probe="feed", metrics=("thousand_minibatches",)),),
            instead=_INSTEAD,
        ),
        PaperFigure(
            number="5",
            title="Time over minibatches loaded so far",
            caption="所要時間の推移",
            parts=(FigurePart(probe="feed", metrics=("elapsed",), levels=(("reads", "2"),)),),
            instead=_INSTEAD + ", two at once. The curve is that of the first 100 minibatches with"
            " --quick, of 250 without, and of all 1,000 with --full",
        ),
        PaperFigure(
            number="table 2",
            title="The first minibatch, and all 1,000",
            caption="1 ミニバッチ目のロードに要した所要時間",
            parts=(FigurePart(probe="feed", metrics=("first_minibatch", "thousand_minibatches")),),
            instead=_INSTEAD,
        ),
        PaperFigure(
            number="6",
            title="1,000 minibatches with an empty cache, over reads at once",
            caption="提案手法のプリフェッチステージのプロセス数を変えて計測した評価結果",
            parts=(
                FigurePart(
                    probe="feed",
                    metrics=("thousand_minibatches",),
                    levels=(("storage", "empty cache"),),
                ),
            ),
            instead=_INSTEAD,
        ),
        PaperFigure(
            number="7",
            title="10 epochs of training, over nodes",
            caption="10 epoch の訓練に要した処理時間",
            parts=_trained("", "training"),
            instead=_TRAINED,
            between=_TRAINED_ON_POOL,
        ),
        PaperFigure(
            number="table 3",
            title="All files copied to the node's own storage, 8 at once",
            caption="各ノードにおいて 8 並列でファイルをコピーした際の所要時間",
            parts=_trained("local copy", "file_copy"),
            instead=_TRAINED + _WARM,
            between=_TRAINED_ON_POOL + _WARM,
        ),
        PaperFigure(
            number="8",
            title="10 epochs of training, with the time of the copy",
            caption="ベースライン (SSD) にファイルコピーに要する時間を追加した結果",
            parts=_trained("", "training_with_copy", "file_copy"),
            instead=_TRAINED,
            between=_TRAINED_ON_POOL,
        ),
        PaperFigure(
            number="9",
            title="Parts of an epoch: the proposal",
            caption="提案手法における各 epoch における所要時間の内訳",
            parts=_trained("feed", "stage", "other_share"),
            instead=_TRAINED,
            between=_TRAINED_ON_POOL,
        ),
        PaperFigure(
            number="10",
            title="Parts of an epoch: files on SSD",
            caption="ベースラインと SSD の組み合わせにおける所要時間の内訳",
            parts=_trained("local copy", "stage", "other_share"),
            instead=_TRAINED,
            between=_TRAINED_ON_POOL,
        ),
        PaperFigure(
            number="11",
            title="Parts of an epoch: files on Lustre",
            caption="ベースラインと Lustre の組み合わせにおける所要時間の内訳",
            parts=_trained("shared", "stage", "other_share"),
            instead=_TRAINED,
            between=_TRAINED_ON_POOL,
        ),
        PaperFigure(
            number="table 4",
            title="Loading in the first and second iteration",
            caption="1 epoch 目の 1, 2iteration 目におけるミニバッチのロードに要した合計時間",
            parts=_trained("", "load"),
            instead=_TRAINED,
            between=_TRAINED_ON_POOL,
        ),
        PaperFigure(
            number="12",
            title="Why the first iteration waits",
            caption="訓練データ入力処理の状況を時系列で表した図",
            lacking="it is a drawing of how the paper's method works, without a number;"
            " `python examples/resnet50/train.py --data DIR --out OUT --trace FILE"
            " --trace-iterations 5` writes such a timeline of a training of yours, for"
            " ui.perfetto.dev",
        ),
        *(
            PaperFigure(
                number=f"table A.{number}",
                title=f"10 epochs in detail: {what}",
                caption=f"{words}において 10 epoch 訓練に要した時間",
                parts=_trained(loader, *_IN_DETAIL),
                instead=_TRAINED,
                between=_TRAINED_ON_POOL,
            )
            for number, what, words, loader in (
                (1, "files on SSD", "ベースライン (SSD) ", "local copy"),
                (2, "files on Lustre", "ベースライン (Lustre) ", "shared"),
                (3, "the proposal", "提案手法", "feed"),
            )
        ),
    ),
)
