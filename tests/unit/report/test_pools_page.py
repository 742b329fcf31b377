"""What the page of pools says of one."""

from flowos.model import Pool
from flowos.report.site import pools_html


def test_a_pool_shows_what_its_kind_alone_has_in_words() -> None:
    slurm = Pool(
        name="s", kind="slurm", partition="p", account="a", qos="q", constraint="c", gres="gpu"
    )
    page = pools_html((slurm,), "f")
    assert "<dt>Partition<dd>p<dt>Account<dd>a<dt>Quality of service<dd>q" in page
    assert "<dt>Features<dd>c<dt>Generic resources<dd>gpu" in page
    grid = Pool(name="g", kind="sge", queue="all.q", pe="whole", shared="/all", scratch="/own")
    page = pools_html((grid,), "f")
    assert "<dt>Queue<dd>all.q<dt>Parallel environment<dd>whole<dt>Shared folder<dd>/all" in page
    assert page.count("promise") == 0
