"""Tests in groups, so that one file runs in parts: the arguments are heedc, a folder, and the groups of this run."""
import sys

import numpy as np

import programs
from runs import finish

folder, wanted = sys.argv[2], sys.argv[3:]
programs.start(sys.argv[1], folder)
rng = np.random.default_rng(3)
groups = {}


def group(function):
    groups[function.__name__] = function
    return function


def run_wanted():
    for name in wanted:
        groups[name]()
    finish()


def f32(*shape):
    return rng.uniform(-2, 2, shape).astype(np.float32)
