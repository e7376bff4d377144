# RUN: %python %s heedc
"""Lee et al. 2019: MAB(X, Y) = LN(H + rFF(H)), H = LN(X + Multihead(X, Y, Y)); ISAB(X) = MAB(X, MAB(I, X)); PMA(Z) = MAB(S, rFF(Z));
rFF(SAB(PMA(ISAB(ISAB(X))))). The last case shuffles the set of the first: the result stays."""
import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform

HEADS = 2


def rff(x, weights, at):
    return np.maximum(linear(x, weights, at), 0)


def mab(x, y, weights, at):
    h = layer_norm(x + multi_head(x, y, weights, HEADS, at + "."), weights, at + ".norm1")
    return layer_norm(h + rff(h, weights, at + ".rff"), weights, at + ".norm2")


def oracle(inputs, weights):
    out = []
    for x in inputs["x"].astype(np.float64)[:, None]:
        for l in range(2):
            inducing = weights[f"isab.{l}.inducing"].astype(np.float64)[None]
            x = mab(x, mab(inducing, x, weights, f"isab.{l}.mab1"), weights, f"isab.{l}.mab2")
        p = mab(weights["pma.seeds"].astype(np.float64)[None], rff(x, weights, "pma.rff"), weights, "pma")
        out.append(rff(mab(p, p, weights, "sab"), weights, "decoder"))
    return {"y": np.concatenate(out)}


def mab_weights(rng, at, d):
    weights = linear_weights(rng, at + ".rff", d, d) | norm_weights(rng, at + ".norm1", d) | norm_weights(rng, at + ".norm2", d)
    for name in ("query", "key", "value", "output"):
        weights |= linear_weights(rng, f"{at}.{name}", d, d)
    return weights


rng = np.random.default_rng(343)
cases = []
for b, n, d in [(2, 11, 8), (1, 150, 8), (1, 1, 4)]:
    weights = {"pma.seeds": uniform(rng, 3, d)} | linear_weights(rng, "decoder", d, d)
    for l in range(2):
        weights |= {f"isab.{l}.inducing": uniform(rng, 4, d)} | mab_weights(rng, f"isab.{l}.mab1", d) | mab_weights(rng, f"isab.{l}.mab2", d)
    # In pma, rff goes over the inputs and over H alike: one layer, two uses.
    cases.append((dict(x=uniform(rng, b, n, d)), weights | mab_weights(rng, "pma", d) | mab_weights(rng, "sab", d)))
cases.append((dict(x=np.ascontiguousarray(cases[0][0]["x"][:, ::-1])), cases[0][1]))
check("memory-compression/set-transformer", oracle, cases)
