# RUN: %python %s heedc
"""Liu and Lapata 2019, section 3.2.2: a^z_j = W_a^z x_j, b^z_j = W_b^z x_j, head^z = LN(W_c^z sum_j softmax_j(a^z) b^z_j). The oracle pools the tokens
first. Padding holds NaN; of a paragraph of padding alone the norm's bias is left."""
import numpy as np
from zoo import check, f64, layer_norm, norm_weights, softmax, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    queries, values, outputs = f64(*(weights[n + ".weight"] for n in ("query", "value", "output")))
    head = np.zeros((len(x),) + values.shape[:2])
    for b, length in enumerate(inputs["length"]):
        for z, q in enumerate(queries):
            pooled = softmax(x[b, :length] @ q) @ x[b, :length]
            head[b, z] = outputs[z] @ (values[z] @ pooled)
    return {"head": layer_norm(head, weights, "norm")}


rng = np.random.default_rng(417)
cases = []
for lengths, n, d, z, e in [([9, 4, 0, 1], 9, 16, 4, 4), ([300, 170], 300, 8, 2, 3), ([1], 1, 4, 1, 5), ([30], 40, 20, 3, 9)]:
    x = uniform(rng, len(lengths), n, d)
    for b, length in enumerate(lengths):
        x[b, length:] = np.nan
    weights = {"query.weight": uniform(rng, z, d) * np.float32(d**-0.5), "value.weight": uniform(rng, z, e, d), "output.weight": uniform(rng, z, e, e)}
    cases.append((dict(x=x, length=np.array(lengths, np.int32)), weights | norm_weights(rng, "norm", e)))
check("memory-compression/attention-pooling", oracle, cases)
