# RUN: %peers %s heedc
"""torch.nn.RNN with tanh, of packed sentences: it has two biases, whose sum is the model's one."""
import numpy as np
from peers import array, compare, drawn, uniform
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

D, E = 20, 24
net = drawn(nn.RNN(D, E, batch_first=True))
weights = {"weight_ih": array(net.weight_ih_l0), "weight_hh": array(net.weight_hh_l0), "bias": array(net.bias_ih_l0 + net.bias_hh_l0)}


def peer(s, z, length):
    y, last = net(pack_padded_sequence(s, length, batch_first=True, enforce_sorted=False), z[None])
    return {"y": pad_packed_sequence(y, batch_first=True, total_length=s.shape[1])[0], "last": last[0]}


rng = np.random.default_rng(1)
compare("recurrence/rnn", weights, [dict(s=uniform(rng, len(n), max(n), D), z=uniform(rng, len(n), E), length=np.array(n, np.int32))
                                    for n in ([7], [1, 5, 3], [130, 17])], peer)
