"""Runs heedc and heed-opt. The first call starts the tool once, preloaded with forkserver.c; each call is a fork of that process, since
loading LLVM's libraries takes longer than compiling a small model."""
import functools
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

FOLDER = pathlib.Path(__file__).parent
REQUESTS, ANSWERS = 198, 199
# A bare machine has no other C compiler than the one that Heed is built with.
CC = os.environ.get("CC") or shutil.which("cc") or "clang-22"

servers = {}
scratch = tempfile.TemporaryDirectory()  # also of the children, which do not tidy up


def tool(name):
    folder = os.environ.get("HEED_BIN")
    return str(pathlib.Path(folder) / name) if folder else name


class Server:
    def __init__(self, name):
        library = pathlib.Path(scratch.name) / "forkserver.so"
        if not library.exists():
            subprocess.run([CC, "-O1", "-shared", "-fPIC", "-o", library, FOLDER / "forkserver.c", "-ldl"], check=True)
        requests, self.requests = os.pipe()
        self.answers, answers = os.pipe()

        def prepare():
            os.dup2(requests, REQUESTS)
            os.dup2(answers, ANSWERS)
        self.process = subprocess.Popen([tool(name)], env={**os.environ, "LD_PRELOAD": str(library)}, preexec_fn=prepare, close_fds=False,
                                        stdin=subprocess.DEVNULL)
        os.close(requests)
        os.close(answers)

    def __call__(self, arguments):
        out = pathlib.Path(scratch.name) / f"out{os.getpid()}"
        own = [f"{k}={v}" for k, v in os.environ.items() if k.startswith("HEED_")]
        data = b"".join(str(a).encode() + b"\0" for a in [out, len(own), *own, *arguments])
        os.write(self.requests, struct.pack("I", len(data)) + data)
        answer = os.read(self.answers, 4)
        if len(answer) < 4:
            raise RuntimeError("a tool's process ended")
        text = out.read_text(errors="replace")
        out.unlink()
        return text, os.waitstatus_to_exitcode(struct.unpack("i", answer)[0])


@functools.cache
def libgcc():
    return subprocess.run([CC, "-print-libgcc-file-name"], capture_output=True, text=True, check=True).stdout.strip()


def start():
    """Before a process forks that will call, so that its siblings share the servers."""
    libgcc()
    for name in ("heedc", "heed-opt"):
        if name not in servers:
            servers[name] = Server(name)


def restart():
    """After a process ended in the middle of a call: its answer would be the next one's."""
    for server in servers.values():
        server.process.kill()
        server.process.wait()
        os.close(server.requests)
        os.close(server.answers)
    servers.clear()
    start()


def run_tool(command):
    """What heedc or heed-opt printed on both streams, and its exit code (-n: signal n). It may take 60 s of processor time
    (forkserver.c), so that a busy machine is no finding."""
    start()
    return servers[pathlib.Path(command[0]).name](command[1:])
