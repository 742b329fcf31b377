"""Programs that read and write files of fixed names where they run: each gets its own folder."""

from flowos.model import Argv

_SCRIPT = """
folder=$(mktemp -d ./own.XXXXXX) && cd "$folder" || exit 1
printf %s "$2" > "$1"
shows=$3
shift 3
"$@"
code=$?
for file in $shows; do [ -f "$file" ] && cat -- "$file"; done
cd .. && rm -r "$folder"
exit $code
"""


def in_own_folder(command: Argv, *, reads: str, text: str, shows: str = "") -> Argv:
    """The command in a new folder with the file `reads` of this text.

    shows: pattern of the files that are printed after its own output.
    """
    return ("/bin/sh", "-c", _SCRIPT, "sh", reads, text, shows, *command)
