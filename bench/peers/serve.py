# SPDX-License-Identifier: MIT
"""Computes the problems of heed-bench with a Python library; heed-bench --python starts it.

usage: serve.py torch|onnxruntime

Requests are lines on standard input, each with a one-line answer on standard output:

    open SUITE SHAPE THREADS    ready, or: unable
    run CALLS                   seconds that so many calls took
    result                      number of floats, and after the line the floats as bytes
    close                       closed

Where something fails the answer is: error MESSAGE. The first line that it says itself is: hello VERSION.
example: printf 'open linear 64x384x384 1\\nrun 100\\n' | python3 serve.py torch
"""

import ctypes
import importlib
import os
import signal
import sys
import time

os.environ["NUMPY_MADVISE_HUGEPAGE"] = "0"  # before numpy comes: the other libraries' operands have no huge pages either

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LIBRARIES = {"torch": "torch_peer", "onnxruntime": "onnxruntime_peer"}


def keep_memory():
    """Freed results stay with the process: new pages for every result would cost more than many of them."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(M_MMAP_THRESHOLD, 1 << 30)
    mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)


# Longer than from one tick of a CPU to the next: what a thread runs there counts for its process at ticks only.
PAUSE = 12e-3


def settle():
    """Waits until threads that spin have gone to sleep, or they would take the next library's CPUs."""
    for _ in range(40):
        wall, cpu = time.perf_counter(), time.process_time()
        time.sleep(PAUSE)
        if time.process_time() - cpu < 0.25 * (time.perf_counter() - wall):
            return


class Server:
    """Holds the problem that is open."""

    def __init__(self, library, make_problem, out):
        self.library = library
        self.make_problem = make_problem
        self.out = out
        self.problem = self.task = None

    def say(self, line):
        self.out.write(line.encode() + b"\n")
        self.out.flush()

    def open(self, suite, shape, threads):
        self.problem = self.make_problem(suite, shape, int(threads))
        self.task = self.library.prepare(self.problem)
        self.say("ready" if self.task else "unable")

    def run(self, calls):
        call = self.task.call
        count = range(int(calls))
        begin = time.perf_counter()
        for _ in count:
            call()
        seconds = time.perf_counter() - begin
        if self.problem.threads > 1:
            settle()
        self.say(f"{seconds:.9e}")

    def result(self):
        values = self.task.result()
        self.say(str(values.size))
        self.out.write(values.astype("float32").tobytes())
        self.out.flush()

    def close(self):
        self.problem = self.task = None
        self.say("closed")

    def serve(self, request):
        name, *arguments = request.split()
        handlers = {"open": self.open, "run": self.run, "result": self.result, "close": self.close}
        try:
            handlers[name](*arguments)
        except Exception as error:  # noqa: BLE001, whatever a library raises belongs to the answer
            self.say("error " + " ".join(f"{type(error).__name__}: {error}".split())[:200])


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in LIBRARIES:
        wanted = sys.argv[1:] in (["-h"], ["--help"])
        print(__doc__.strip(), file=sys.stdout if wanted else sys.stderr)
        sys.exit(0 if wanted else 2)
    # What libraries print must not end up among the answers.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # heed-bench, which a terminal interrupts as well, ends this process
    keep_memory()
    try:
        problem = importlib.import_module("problem")
        library = importlib.import_module(LIBRARIES[sys.argv[1]])
    except ImportError as error:
        out.write(f"error {error}\n".encode())
        return
    server = Server(library, problem.Problem, out)
    server.say(f"hello {library.VERSION}")
    for request in sys.stdin:
        server.serve(request)


if __name__ == "__main__":
    main()
