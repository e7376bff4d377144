# RUN: %peers %s heedc
"""performer_pytorch: the softmax kernel's features and attention through them. The package adds 1e-4 to every feature, the paper's equations have no such
number: it is set to 0. Its maximum is taken before |x|^2 / 2 is subtracted, which cancels in the quotient."""
import numpy as np
from peers import array, compare, uniform
from performer_pytorch.performer_pytorch import gaussian_orthogonal_random_matrix, linear_attention, softmax_kernel

omega = gaussian_orthogonal_random_matrix(24, 16)
rng = np.random.default_rng(9)
cases = [dict(q=uniform(rng, 2, 3, n, 16), k=uniform(rng, 2, 3, m, 16), v=uniform(rng, 2, 3, m, 20)) for n, m in ((33, 33), (1, 9), (70, 40))]


def run(q, k, v):
    fq, fk = (softmax_kernel(x, projection_matrix=omega.double(), is_query=x is q, eps=0) for x in (q, k))
    return {"o": linear_attention(fq, fk, v)}


compare("linear/performer-favor", {"omega": array(omega)}, cases, run)
