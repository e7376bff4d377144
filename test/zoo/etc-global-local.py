# RUN: %python %s heedc
"""Ainslie et al. 2020, section 3.2: e_ij = x_i W_Q (x_j W_K + a_ij)^T / sqrt(d) - (1 - M_ij) C in four pieces g2g, g2l, l2g, l2l; g2g with
g2l and l2g with l2l have one softmax. l2l reaches 4 positions, its labels are offsets clipped at 2."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, radius=4, clip=2):
    qg, kg, vg, ql, kl, vl, a = f64(*(inputs[name] for name in ("qg", "kg", "vg", "ql", "kl", "vl", "a")))
    b, h, g, e = qg.shape
    n = ql.shape[2]
    zg, zl = np.zeros(qg.shape), np.zeros(ql.shape)
    for bb in range(b):
        for hh in range(h):
            keys, values = np.concatenate([kg[bb, hh], kl[bb, hh]]), np.concatenate([vg[bb, hh], vl[bb, hh]])
            for i in range(g):
                live = inputs["g_mask"][bb, i]
                s = (keys + a[inputs["g_label"][bb, i]]) @ qg[bb, hh, i] / np.sqrt(e)
                zg[bb, hh, i] = softmax(s, live) @ values
            for i in range(n):
                scores, chosen = [], []
                for j in range(g):
                    if inputs["l2g_mask"][bb, i, j]:
                        scores.append(ql[bb, hh, i] @ (kg[bb, hh, j] + a[inputs["l2g_label"][bb, i, j]]))
                        chosen.append(vg[bb, hh, j])
                for offset in range(-radius, radius + 1):
                    if 0 <= i + offset < n and inputs["l2l_mask"][bb, i, offset + radius]:
                        label = min(max(offset, -clip), clip) + clip
                        scores.append(ql[bb, hh, i] @ (kl[bb, hh, i + offset] + a[label]))
                        chosen.append(vl[bb, hh, i + offset])
                if scores:
                    zl[bb, hh, i] = softmax(np.array(scores) / np.sqrt(e)) @ np.array(chosen)
    return {"zg": zg, "zl": zl}


rng = np.random.default_rng(310)
cases = []
for b, h, g, n, e, labels, density in [(2, 2, 3, 21, 8, 9, 0.8), (1, 1, 5, 150, 8, 12, 0.5), (1, 1, 1, 1, 4, 5, 1), (1, 2, 2, 6, 4, 7, 0)]:
    inputs = {name: uniform(rng, b, h, g, e) for name in ("qg", "kg", "vg")} | {name: uniform(rng, b, h, n, e) for name in ("ql", "kl", "vl")}
    inputs |= dict(a=uniform(rng, labels, e), g_label=rng.integers(0, labels, (b, g, g + n)).astype(np.int32), g_mask=rng.random((b, g, g + n)) < density)
    inputs |= dict(l2g_label=rng.integers(0, labels, (b, n, g)).astype(np.int32), l2g_mask=rng.random((b, n, g)) < density, l2l_mask=rng.random((b, n, 9)) < density)
    cases.append((inputs, None))
check("sparse/etc-global-local", oracle, cases)
