# RUN: %peers %s heedc
"""vit_pytorch's CaiT attention, whose heads talk before and after the softmax: as in the paper with as many heads everywhere. What is compared is what
its heads give, before the projection of the output."""
import numpy as np
from peers import array, before, compare, drawn, heads, tensor, uniform
from vit_pytorch.cait import Attention

peer = drawn(Attention(32, heads=4, dim_head=8))
rng = np.random.default_rng(10)
xs = {n: uniform(rng, 2, n, 32) for n in (33, 1, 70)}


def case(x):
    normal = peer.norm(tensor(x))
    q, k, v = (array(heads(y, 4)) for y in (peer.to_q(normal), *peer.to_kv(normal).chunk(2, -1)))
    return dict(q=q, k=k, v=v, pl=array(peer.mix_heads_pre_attn), pw=array(peer.mix_heads_post_attn))


def run(q, k, v, pl, pw):
    x = tensor(xs[q.shape[2]])
    return {"o": heads(before(peer.to_out, lambda: peer(x)), 4)}


compare("heads/talking-heads", {}, [case(x) for x in xs.values()], run)
