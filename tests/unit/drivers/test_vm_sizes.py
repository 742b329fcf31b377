"""The catalogue of sizes: every row says what it is, and where and when that was read."""

import re

from flowos.drivers.clouds.sizes import read_sizes, vm_sizes

ROWS = """\
# A remark
# 1: there, read 2026-11-23
# 2: elsewhere
cloud,size,vcpus,memory_gib,gpus,gpu,network_gbit,region,price,spot,currency,source
ec2,small,4,8,0,,12.5,r,0.2,0.1,USD,1
azure,large,48,192,4,T4,,s,3.9,,EUR,2
"""


def test_a_row_is_a_size_in_units_without_a_prefix() -> None:
    small, large = read_sizes(ROWS)
    assert (small.vcpus, small.memory_bytes, small.network_bytes) == (4, 8 << 30, 1.5625e9)
    assert (small.cloud, small.name, small.region) == ("ec2", "small", "r")
    assert (small.price, small.spot, small.source) == (0.2, 0.1, "there, read 2026-11-23")
    assert (large.gpus, large.gpu, large.network_bytes, large.spot) == (4, "T4", None, None)
    assert (large.source, large.currency) == ("elsewhere", "EUR")


def test_every_row_of_the_catalogue_has_a_dated_source_and_a_price() -> None:
    sizes = vm_sizes()
    assert len({(size.cloud, size.name, size.region) for size in sizes}) == len(sizes) > 20
    for size in sizes:
        assert re.search(r"( at [0-9a-f]{8},|T. Nagai.*) read \d{4}-\d\d-\d\d", size.source)
        assert size.price is not None
        assert size.price > (size.spot or 0) >= 0
        assert (size.spot is None) == (size.name == "Standard_NC40ads_H100_v5")
        assert bool(size.gpu) == bool(size.gpus)
