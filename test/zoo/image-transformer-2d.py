# RUN: %python %s heedc
"""Parmar et al. 2018, section 3.3: query blocks of 4 x 6 pixels in raster order, memory with 3 more rows above and 4 more columns on both
sides; a pixel attends to the pixels of its memory that have been generated, itself included."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, hq=4, wq=6, hm=3, wm=4):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    height, width = q.shape[2:4]
    out = np.zeros(q.shape[:4] + v.shape[4:])
    done = []
    for top in range(0, height, hq):
        for left in range(0, width, wq):
            for y in range(top, min(top + hq, height)):
                for x in range(left, min(left + wq, width)):
                    done.append((y, x))
                    seen = [p for p in done if top - hm <= p[0] < top + hq and left - wm <= p[1] < left + wq + wm]
                    ys, xs = zip(*seen)
                    s = np.einsum("bae,bake->bak", q[:, :, y, x], k[:, :, ys, xs]) / np.sqrt(q.shape[-1])
                    out[:, :, y, x] = np.einsum("bak,bakf->baf", softmax(s), v[:, :, ys, xs])
    return {"o": out}


rng = np.random.default_rng(314)
cases = []
for b, a, h, w, e, f in [(2, 2, 9, 15, 8, 5), (1, 1, 13, 20, 8, 8), (1, 1, 3, 4, 4, 4), (1, 1, 1, 1, 4, 6), (1, 1, 1, 30, 4, 4), (1, 1, 17, 1, 4, 4)]:
    cases.append((dict(q=uniform(rng, b, a, h, w, e), k=uniform(rng, b, a, h, w, e), v=uniform(rng, b, a, h, w, f)), None))
check("sparse/image-transformer-2d", oracle, cases)
