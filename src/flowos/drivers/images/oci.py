"""Reads and writes the JSON of OCI and Docker images (OCI image-spec; Docker image spec v1.2)."""

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from flowos._dataclasses import dataclass
from flowos.drivers.images.own_config import read_json
from flowos.model import ImageConfig

_INDEXES = ("application/vnd.oci.image.index.v1+json", "manifest.list.v2+json")
_ATTESTATION = "vnd.docker.reference.type"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")

LAYOUT = json.dumps({"imageLayoutVersion": "1.0.0"}).encode()


@dataclass(frozen=True, slots=True)
class Descriptor:
    digest: str
    media_type: str = ""
    size_bytes: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    config: Descriptor
    layers: tuple[Descriptor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """diff_ids: digests of the uncompressed layers, the lowest first."""

    image: ImageConfig
    architecture: str
    diff_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerImage:
    """One image of a Docker archive: names of its members."""

    config: str
    layers: tuple[str, ...]
    tags: tuple[str, ...] = ()


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def chosen(index: bytes, architecture: str) -> Descriptor:
    """The manifest (or inner index) for this architecture.

    Raises ValueError if there is none, or if there are several images.
    """
    offered = [m for m in _list(_object(index, "index"), "manifests") if _runs(m)]
    if not offered:
        raise ValueError("it holds no image")
    fits = [m for m in offered if _architecture(m) in ("", architecture)]
    if not fits:
        have = ", ".join(sorted({_architecture(m) for m in offered}))
        raise ValueError(f"it is for {have}, not for {architecture}")
    if len({m.get("digest") for m in fits}) > 1:
        names = ", ".join(str(_name(m) or m.get("digest")) for m in fits)
        raise ValueError(f"it holds {len(fits)} images ({names}): give one of them alone")
    return _descriptor(fits[0])


def is_index(descriptor: Descriptor) -> bool:
    return descriptor.media_type.endswith(_INDEXES)


def read_manifest(text: bytes) -> Manifest:
    raw = _object(text, "manifest")
    if "config" not in raw or "layers" not in raw:
        what = f"schema {raw.get('schemaVersion')}, {raw.get('mediaType', 'no media type')}"
        raise ValueError(f"its manifest is of a kind that is no image ({what})")
    return Manifest(
        config=_descriptor(raw["config"]),
        layers=tuple(_descriptor(layer) for layer in _list(raw, "layers")),
    )


def read_config(text: bytes) -> Configuration:
    """Configuration of an image. Variables without '=' are skipped."""
    raw = _object(text, "configuration")
    inner = raw.get("config") or {}
    rootfs = raw.get("rootfs") or {}
    if not isinstance(inner, dict) or not isinstance(rootfs, dict):
        raise ValueError("its configuration cannot be read")
    pairs = (word.partition("=") for word in _words(inner, "Env") if "=" in word)
    cwd = inner.get("WorkingDir") or ""
    return Configuration(
        image=ImageConfig(
            entrypoint=_words(inner, "Entrypoint"),
            command=_words(inner, "Cmd"),
            variables=tuple((name, value) for name, _, value in pairs if name),
            cwd=PurePath(cwd) if isinstance(cwd, str) and cwd else None,
        ),
        architecture=str(raw.get("architecture") or ""),
        diff_ids=_words(rootfs, "diff_ids"),
    )


def read_docker_manifest(text: bytes) -> DockerImage:
    """The one image of a `docker save`. Raises ValueError if there is none, or several."""
    raw = read_json(text, "manifest.json")
    if not isinstance(raw, list) or not all(isinstance(image, dict) for image in raw):
        raise ValueError("its manifest.json is no list of images")
    if len(raw) != 1:
        tags = ", ".join(tag for image in raw for tag in _words(image, "RepoTags"))
        raise ValueError(f"it holds {len(raw)} images ({tags or 'no tags'}): save one alone")
    (image,) = raw
    return DockerImage(
        config=str(image.get("Config") or ""),
        layers=_words(image, "Layers"),
        tags=_words(image, "RepoTags"),
    )


def written_config(config: ImageConfig, architecture: str, diff_id: str) -> bytes:
    """Configuration with one layer; without times, so that equal images have equal digests."""
    inner: dict[str, object] = {"Env": [f"{name}={value}" for name, value in config.variables]}
    if config.entrypoint:
        inner["Entrypoint"] = list(config.entrypoint)
    if config.command:
        inner["Cmd"] = list(config.command)
    if config.cwd:
        inner["WorkingDir"] = str(config.cwd)
    return _text(
        {
            "architecture": architecture,
            "os": "linux",
            "config": inner,
            "rootfs": {"type": "layers", "diff_ids": [diff_id]},
            "history": [{"created_by": "flowos image export"}],
        }
    )


def written_manifest(config: Descriptor, layer: Descriptor) -> bytes:
    kind = "application/vnd.oci.image."
    return _text(
        {
            "schemaVersion": 2,
            "mediaType": f"{kind}manifest.v1+json",
            "config": _plain(config, f"{kind}config.v1+json"),
            "layers": [_plain(layer, f"{kind}layer.v1.tar")],
        }
    )


def written_index(manifest: Descriptor, name: str) -> bytes:
    named = {"annotations": {"org.opencontainers.image.ref.name": name}} if name else {}
    described = _plain(manifest, "application/vnd.oci.image.manifest.v1+json")
    return _text({"schemaVersion": 2, "manifests": [described | named]})


def _plain(descriptor: Descriptor, media_type: str) -> dict[str, object]:
    size = descriptor.size_bytes
    return {"mediaType": media_type, "digest": descriptor.digest, "size": size}


def _text(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _runs(manifest: Mapping[str, Any]) -> bool:
    """Whether it is an image, not a signature or attestation that builders add."""
    annotations = manifest.get("annotations") or {}
    return _ATTESTATION not in annotations and _architecture(manifest) != "unknown"


def _architecture(manifest: Mapping[str, Any]) -> str:
    return str((manifest.get("platform") or {}).get("architecture") or "")


def _name(manifest: Mapping[str, Any]) -> object:
    return (manifest.get("annotations") or {}).get("org.opencontainers.image.ref.name")


def _descriptor(raw: object) -> Descriptor:
    if not isinstance(raw, dict) or not is_digest(str(raw.get("digest"))):
        raise ValueError(f"its manifest names no digest where one must be: {raw!r:.80}")
    size = raw.get("size")
    return Descriptor(
        digest=raw["digest"],
        media_type=str(raw.get("mediaType") or ""),
        size_bytes=size if isinstance(size, int) else -1,
    )


def _object(text: bytes, what: str) -> dict[str, Any]:
    raw = read_json(text, what)
    if not isinstance(raw, dict):
        raise ValueError(f"its {what} is no JSON object")
    return raw


def _list(raw: Mapping[str, Any], key: str) -> list[Any]:
    value = raw.get(key)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError(f"its {key!r} is no list of objects")
    return value


def _words(raw: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = raw.get(key) or []
    if isinstance(value, str):
        return ("/bin/sh", "-c", value)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"its {key!r} is no list of words")
    return tuple(value)
