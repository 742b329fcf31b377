"""OCI and Docker JSON: read to nouns, refused in words, written to be read again."""

import json
from pathlib import PurePath

import pytest

from flowos.drivers.images import oci
from flowos.drivers.images.own_config import read_own_config
from flowos.model import ImageConfig, to_plain

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
INDEX = "application/vnd.oci.image.index.v1+json"


def index(*manifests: object) -> bytes:
    return json.dumps({"manifests": manifests}).encode()


def described(digest: str, **more: object) -> dict[str, object]:
    return {"digest": digest, "mediaType": "x", "size": 5, **more}


UNKNOWN = described(B, platform={"architecture": "unknown"})


def test_the_manifest_for_the_architecture_is_chosen() -> None:
    here, there = {"architecture": "amd64"}, {"architecture": "arm64"}
    offered = index(described(A, platform=there), described(B, platform=here))
    assert oci.chosen(offered, "amd64") == oci.Descriptor(B, "x", 5)
    assert oci.chosen(index(described(A)), "riscv64").digest == A


def test_signatures_beside_an_image_are_passed_over() -> None:
    noted = {"vnd.docker.reference.type": "attestation-manifest"}
    attested = described(B, annotations=noted)
    assert oci.chosen(index(attested, described(A), UNKNOWN), "amd64").digest == A


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (index(), "it holds no image"),
        (index(UNKNOWN), "it holds no image"),
        (
            index(described(A, platform={"architecture": "arm64"}), UNKNOWN),
            "it is for arm64, not for amd64",
        ),
        (
            index(
                described(A, annotations={"org.opencontainers.image.ref.name": "one"}),
                described(B),
            ),
            rf"it holds 2 images \(one, {B}\): give one of them alone",
        ),
        (index({"digest": "sha256:../../x"}), "names no digest"),
        (b"[]", "its index is no JSON object"),
        (b"{", "its index is no JSON"),
        (b"{}", "its 'manifests' is no list of objects"),
        (b'{"manifests": [1]}', "its 'manifests' is no list of objects"),
        (b"[" * 100_000, "its index is no JSON"),
    ],
)
def test_an_index_that_leads_to_no_image_is_refused(text: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        oci.chosen(text, "amd64")


def test_the_same_manifest_twice_is_one_image() -> None:
    other = described(A, mediaType="y")
    assert oci.chosen(index(described(A), other), "amd64") == oci.Descriptor(A, "x", 5)


def test_an_index_in_an_index_is_told() -> None:
    assert oci.is_index(oci.Descriptor(A, INDEX))
    docker = "application/vnd.docker.distribution.manifest.list.v2+json"
    assert oci.is_index(oci.Descriptor(A, docker))
    assert not oci.is_index(oci.Descriptor(A, "application/vnd.oci.image.manifest.v1+json"))


def test_a_manifest_is_read() -> None:
    text = json.dumps({"config": described(A), "layers": [{"digest": B}]}).encode()
    assert oci.read_manifest(text) == oci.Manifest(
        config=oci.Descriptor(A, "x", 5), layers=(oci.Descriptor(B),)
    )


def test_a_manifest_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"of a kind that is no image \(schema 1, no media type"):
        oci.read_manifest(b'{"schemaVersion": 1, "fsLayers": []}')
    for half in ("config", "layers"):
        with pytest.raises(ValueError, match=r"of a kind that is no image \(schema None"):
            oci.read_manifest(json.dumps({half: []}).encode())
    with pytest.raises(ValueError, match="names no digest"):
        oci.read_manifest(b'{"config": 7, "layers": []}')


def test_what_an_image_says_of_itself_is_read() -> None:
    inner = {
        "Entrypoint": ["/run"],
        "Cmd": "echo $X",
        "Env": ["A=1=2", "EMPTY=", "no equals", "=x"],
        "WorkingDir": "/w",
    }
    raw = {"architecture": "amd64", "config": inner, "rootfs": {"diff_ids": [A]}}
    config = oci.read_config(json.dumps(raw).encode())
    assert config.architecture == "amd64"
    assert config.diff_ids == (A,)
    assert config.image == ImageConfig(
        entrypoint=("/run",),
        command=("/bin/sh", "-c", "echo $X"),
        variables=(("A", "1=2"), ("EMPTY", "")),
        cwd=PurePath("/w"),
    )


def test_an_image_that_says_nothing_has_an_empty_configuration() -> None:
    config = oci.read_config(b'{"config": null, "rootfs": {"diff_ids": null}}')
    assert config == oci.Configuration(image=ImageConfig(), architecture="", diff_ids=())
    assert oci.read_config(b'{"config": {"WorkingDir": 7}}').image.cwd is None


@pytest.mark.parametrize("text", [b'{"config": 7}', b'{"rootfs": [1]}', b'{"config":{"Env":[7]}}'])
def test_a_configuration_of_wrong_types_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"cannot be read|is no list of words"):
        oci.read_config(text)


def test_what_an_image_of_ours_says_is_read_and_named_where_it_is_no_json() -> None:
    text = json.dumps(to_plain(ImageConfig(cwd=PurePath("/w")))).encode()
    assert read_own_config(text) == ImageConfig(cwd=PurePath("/w"))
    for wrong in (b"[" * 100_000, b"\xff"):
        with pytest.raises(ValueError, match=r"its \.flowos/image\.json is no JSON"):
            read_own_config(wrong)


def test_a_docker_archive_of_one_image_is_read() -> None:
    raw = [{"Config": "c.json", "RepoTags": ["x:1"], "Layers": ["l.tar"]}]
    image = oci.read_docker_manifest(json.dumps(raw).encode())
    assert image == oci.DockerImage(config="c.json", layers=("l.tar",), tags=("x:1",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"{}", "no list of images"),
        (b"[7]", "no list of images"),
        (b"[]", r"it holds 0 images \(no tags\)"),
        (b'[{"RepoTags": ["a:1"]}, {"RepoTags": ["b:2"]}]', r"it holds 2 images \(a:1, b:2\)"),
    ],
)
def test_a_docker_archive_of_none_or_several_is_refused(text: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        oci.read_docker_manifest(text)


@pytest.mark.parametrize(
    "config",
    [
        ImageConfig(),
        ImageConfig(
            entrypoint=("/e", "x y"),
            command=("c",),
            variables=(("A", "b=c"),),
            cwd=PurePath("/w"),
        ),
    ],
    ids=["empty", "full"],
)
def test_what_is_written_is_read_back(config: ImageConfig) -> None:
    text = oci.written_config(config, "arm64", A)
    assert oci.read_config(text) == oci.Configuration(
        image=config, architecture="arm64", diff_ids=(A,)
    )
    manifest = oci.written_manifest(oci.Descriptor(A, size_bytes=1), oci.Descriptor(B))
    assert oci.read_manifest(manifest).layers[0].digest == B
    for name in ("", "fio:1"):
        chosen = oci.chosen(oci.written_index(oci.Descriptor(B, size_bytes=3), name), "arm64")
        assert (chosen.digest, chosen.size_bytes) == (B, 3)


def test_what_is_written_is_as_the_specification_of_oci_images_says() -> None:
    """image-spec 1.1, manifest.md and image-index.md: schemaVersion is 2."""
    kind = "application/vnd.oci.image."
    config, layer = oci.Descriptor(A, size_bytes=1), oci.Descriptor(B, size_bytes=2)
    assert json.loads(oci.written_manifest(config, layer)) == {
        "schemaVersion": 2,
        "mediaType": f"{kind}manifest.v1+json",
        "config": {"mediaType": f"{kind}config.v1+json", "digest": A, "size": 1},
        "layers": [{"mediaType": f"{kind}layer.v1.tar", "digest": B, "size": 2}],
    }
    plain = {"mediaType": f"{kind}manifest.v1+json", "digest": A, "size": 1}
    assert json.loads(oci.written_index(config, "")) == {"schemaVersion": 2, "manifests": [plain]}
    named = {**plain, "annotations": {"org.opencontainers.image.ref.name": "fio:1"}}
    assert json.loads(oci.written_index(config, "fio:1"))["manifests"] == [named]


def test_a_written_configuration_has_a_history_entry_for_its_layer_as_podman_wants() -> None:
    assert len(json.loads(oci.written_config(ImageConfig(), "amd64", A))["history"]) == 1
