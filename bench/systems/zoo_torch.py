"""The zoo's systems in PyTorch (zoo_attention.py, zoo_layers.py, zoo_recurrence.py, zoo_steps.py): each one's equations as a function of inputs,
weights and sizes, for PyTorch to run or compile and, exported, for ONNX Runtime. Written as a PyTorch user would for speed:
scaled_dot_product_attention, conv1d, layer_norm, embedding where they say it."""
import torch
import torch.nn.functional as F

FUNCTIONS = {}  # key -> f(x, w, p): inputs and weights by name, `p` the constants of the case
TABLES = {}  # key -> the same: tensors by name that depend on sizes alone (masks, indices, sinusoids), made before and found among the weights
OTHERS = {}  # key -> function of (x, w, p) that gives name -> what is timed: ways that are no plain function


def equations(key):
    def add(function):
        FUNCTIONS[key] = function
        return function

    return add


def tables(key):
    def add(function):
        TABLES[key] = function
        return function

    return add


def another_way(key):
    def add(function):
        OTHERS[key] = function
        return function

    return add


class Model(torch.nn.Module):
    """The function as a module, its weights as buffers: freezing and export take them as constants."""

    def __init__(self, function, key, p, inputs, weights):
        super().__init__()
        self.function, self.p, self.inputs = function, p, list(inputs)
        held = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
        if key in TABLES:
            held |= TABLES[key]({name: torch.from_numpy(array) for name, array in inputs.items()}, held, p)
        self.names = {name: "held_" + name.replace(".", "_") for name in held}
        for name, tensor in held.items():
            self.register_buffer(self.names[name], tensor)

    def forward(self, *inputs):
        w = {name: getattr(self, at) for name, at in self.names.items()}
        return self.function(dict(zip(self.inputs, inputs)), w, self.p)


def linear(x, w, at):
    return F.linear(x, w[at + ".weight"], w.get(at + ".bias"))


def layer_norm(x, w, at):
    return F.layer_norm(x, x.shape[-1:], w[at + ".weight"], w[at + ".bias"])


def split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def merge(x):
    return x.transpose(-3, -2).flatten(-2)


def project(x, w, heads, at):
    """Queries, keys and values of one sequence in one product; constants are joined once, when it is compiled."""
    names = [at + name for name in ("query", "key", "value")]
    joined = F.linear(x, torch.cat([w[n + ".weight"] for n in names]), torch.cat([w[n + ".bias"] for n in names]))
    return (split(y, heads) for y in joined.chunk(3, -1))


def multi_head(x, memory, w, heads, at, mask=None, causal=False):
    if memory is x:
        q, k, v = project(x, w, heads, at)
    else:
        q, k, v = (split(linear(y, w, at + name), heads) for y, name in ((x, "query"), (memory, "key"), (memory, "value")))
    return linear(merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)), w, at + "output")


def ffn(x, w, at, act=F.relu):
    return linear(act(linear(x, w, at + "up")), w, at + "down")


def offsets(n, m=None):
    """j - i."""
    return torch.arange(m or n)[None] - torch.arange(n)[:, None]


def ways(key):
    """(its equations, its other ways), None where there are none."""
    from systems import zoo_attention, zoo_layers, zoo_recurrence, zoo_steps  # they fill the tables
    assert zoo_attention and zoo_layers and zoo_recurrence and zoo_steps
    return FUNCTIONS.get(key), OTHERS.get(key)


def model(p, inputs, weights):
    """(module, its arguments)."""
    function, _ = ways(p["key"])
    return Model(function, p["key"], p["sets"], inputs, weights).eval(), [torch.from_numpy(a.copy()) for a in inputs.values()]
