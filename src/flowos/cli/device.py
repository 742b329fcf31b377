"""`flowos device`: the devices of this machine; load, verify and reset FPGAs."""

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from flowos.cli._output import print_folded, print_json
from flowos.cli._shared import add_json, top_command, with_example

if TYPE_CHECKING:
    from flowos.model import DeviceState
    from flowos.operations.devices import CheckedDevice, LoadedBitstream

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_DIGEST_CHARS = 19


def add(commands: "Commands") -> None:
    top = top_command(commands, "device", "flowos device list")
    commands = top.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)
    listed = with_example(
        commands,
        "list",
        "processors, OpenCL, GPUs and FPGAs: which program has each, what it is loaded with, why it"
        " cannot be used",
        "flowos device list --json",
    )
    add_json(listed)
    load = with_example(
        commands,
        "load",
        "configure an FPGA with a bitstream, and see that it is DONE",
        "flowos device load top.bit --dry-run",
    )
    load.add_argument("file", type=Path, metavar="FILE", help=".bit, .bin or .xclbin")
    load.add_argument(
        "--device",
        default="",
        metavar="NAME",
        help="default: one of the part it is for that has it already, or is not configured",
    )
    load.add_argument("--again", action="store_true", help="also if it has this bitstream already")
    _add_dry_run(load)
    _add_name(commands, "verify", "see that a device answers, and is configured if it is an FPGA")
    reset = _add_name(
        commands, "reset", "reset a device; if it was taken out of use, it is in use again"
    )
    reset.add_argument("--dry-run", action="store_true", help="show what it would do, do nothing")


def _add_name(commands: "Commands", name: str, about: str) -> argparse.ArgumentParser:
    command = with_example(commands, name, about, f"flowos device {name} arty")
    command.add_argument("device", metavar="NAME", help="as `flowos device list` shows it")
    add_json(command)
    return command


def _add_dry_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dry-run", action="store_true", help="show what it would do, do nothing")
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations import devices

    if args.subcommand == "list":
        return _list(devices.list_devices(), as_json=args.json)
    if args.subcommand == "load":
        done = devices.load(args.file, args.device, again=args.again, dry_run=args.dry_run)
        return _show(done, _loaded(done), as_json=args.json)
    if args.subcommand == "verify":
        seen = devices.verify(args.device)
    else:
        seen = devices.reset(args.device, dry_run=args.dry_run)
    return _show(seen, _checked(seen), as_json=args.json)


def _list(states: "tuple[DeviceState, ...]", *, as_json: bool) -> int:
    if as_json:
        print_json(list(states))
    else:
        for state in states:
            print_folded(_line(state))
    return 0


def _show(done: "LoadedBitstream | CheckedDevice", text: str, *, as_json: bool) -> int:
    if as_json:
        print_json(done)
    else:
        print(text)
        for words in done.commands if done.did.startswith("would") else ():
            print(f"    {shlex.join(words)}")
    return 0


def _line(state: "DeviceState") -> str:
    from flowos.engine import owner_words

    device, record = state.device, state.record
    words = [f"{device.name:16}", f"{device.kind:6}", device.driver]
    words += [word for word in (device.part, device.about, device.cdi) if word]
    words += [f"at {device.at}"] * (device.kind == "fpga")
    words += [f"has {record.loaded[:_DIGEST_CHARS]}"] * bool(record.loaded)
    if record.out:
        words.append(f"OUT OF USE: {record.out}")
    elif device.unusable:
        words.append(f"cannot be used: {device.unusable}")
    elif record.owner is not None:
        words.append(f"in use by {owner_words(record.owner)}")
    return "  ".join(words)


def _loaded(done: "LoadedBitstream") -> str:
    what = f"{done.bitstream.digest[:_DIGEST_CHARS]} for {done.bitstream.part or 'no named part'}"
    device = f"{done.device.name} ({done.device.part or done.device.about})"
    return f"{device}: {done.did} {what}; {done.why}"


def _checked(seen: "CheckedDevice") -> str:
    about = seen.device.part or seen.device.about
    loaded = f", has {seen.loaded[:_DIGEST_CHARS]}" if seen.loaded else ""
    return f"{seen.device.name} ({about}): {seen.did}{loaded}"
