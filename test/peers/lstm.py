# RUN: %peers %s heedc
"""torch.nn.LSTM, two layers of packed sentences: it has two biases, whose sum is the model's one, and gives rows of a sentence's own length alone."""
import numpy as np
from peers import array, compare, drawn, uniform
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

D, E = 20, 24
net = drawn(nn.LSTM(D, E, 2, batch_first=True))
weights = {}
for l in range(2):
    part = lambda name: getattr(net, f"{name}_l{l}")
    weights |= {f"layer.{l}.weight_ih": array(part("weight_ih")), f"layer.{l}.weight_hh": array(part("weight_hh")),
                f"layer.{l}.bias": array(part("bias_ih") + part("bias_hh"))}


def peer(x, h, c, length):
    y, (hs, cs) = net(pack_padded_sequence(x, length, batch_first=True, enforce_sorted=False), (h, c))
    return {"y": pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0], "hs": hs, "cs": cs}


rng = np.random.default_rng(1)
compare("recurrence/lstm", weights, [dict(x=uniform(rng, len(n), max(n), D), h=uniform(rng, 2, len(n), E), c=uniform(rng, 2, len(n), E),
                                          length=np.array(n, np.int32)) for n in ([7], [1, 5, 3], [130, 17])], peer)
