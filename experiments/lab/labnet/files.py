"""Files that are there whole or not at all."""
import contextlib
import os
import pathlib
import tempfile


def write_whole(path, text):
    """Writes beside `path` and renames: a reader never sees half, and a writer that fails leaves what
    was. A link stays a link; what is no file (/dev/stdout) is written to. Raises OSError."""
    target = pathlib.Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_text(text)
        return
    mask = os.umask(0)
    os.umask(mask)
    descriptor, partial = tempfile.mkstemp(prefix=target.name + ".", dir=target.parent)
    try:
        with open(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~mask)
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
