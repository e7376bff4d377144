# RUN: %peers %s heedc
"""linformer.LinformerSelfAttention: projections of keys and values shared by the heads, their first columns for shorter sequences, as in the model. Its
matrices are the transposed ones. What is compared is what its heads give, before the projection of the output."""
import numpy as np
import torch
from linformer.linformer import LinformerSelfAttention
from peers import array, before, compare, drawn, heads, tensor, uniform

peer = drawn(LinformerSelfAttention(32, seq_len=64, k=8, heads=4))
rng = np.random.default_rng(8)
xs = {n: uniform(rng, 2, n, 32) for n in (64, 40, 1)}


def case(x):
    return {name: array(heads(project(tensor(x)), 4)) for name, project in (("q", peer.to_q), ("k", peer.to_k), ("v", peer.to_v))}


def run(q, k, v):
    x = tensor(xs[q.shape[2]])
    return {"o": heads(before(peer.to_out, lambda: peer(x)), 4)}


weights = {"E": array(peer.proj_k.T), "F": array(peer.proj_v.T)}
compare("lowrank/linformer", weights, [case(x) for x in xs.values()], run)
