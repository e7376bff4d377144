# RUN: %python %s heedc
"""Xiao and Zhu 2023, equations 164 and 165; Gu et al. 2022: z_t = z_(t-1) A + s_t B, o_t = z_t C + s_t D. From a zero state also as the convolution
with B A^k C (equation 180), and two halves, the second from the first's last state: all agree."""
import numpy as np
from zoo import check, f64, uniform


def steps(s, z, A, B, C, D):
    o = np.zeros((*s.shape[:2], C.shape[1]))
    for t in range(s.shape[1]):
        z = z @ A + s[:, t] @ B
        o[:, t] = z @ C + s[:, t] @ D
    return o, z


def oracle(inputs, weights):
    s, z = f64(inputs["s"], inputs["z"])
    A, B, C, D = matrices = f64(*(weights[n] for n in "ABCD"))
    n = s.shape[1]
    kernel, power = [], B
    for _ in range(n):
        kernel.append(power @ C)
        power = power @ A
    zero, _ = steps(s, 0 * z, *matrices)
    for t in range(n):
        assert np.allclose(zero[:, t], sum(s[:, i] @ kernel[t - i] for i in range(t + 1)) + s[:, t] @ D, rtol=0, atol=1e-11)
    o, last = steps(s, z, *matrices)
    first, middle = steps(s[:, : n // 2], z, *matrices)
    second, end = steps(s[:, n // 2 :], middle, *matrices)
    assert np.array_equal(o, np.concatenate([first, second], 1)) and np.array_equal(last, end)
    return {"o": o, "last": last}


rng = np.random.default_rng(409)
cases = []
for b, n, i, e, o in [(2, 7, 3, 4, 5), (1, 1, 1, 1, 1), (3, 40, 20, 33, 9), (1, 200, 16, 64, 16), (2, 0, 3, 4, 2), (17, 131, 5, 6, 7)]:
    weights = {"A": uniform(rng, e, e) / np.float32(e), "B": uniform(rng, i, e), "C": uniform(rng, e, o), "D": uniform(rng, i, o)}
    cases.append((dict(s=uniform(rng, b, n, i), z=uniform(rng, b, e)), weights))
# No memory, a state that stays, and one that is exchanged.
for A in (np.zeros((4, 4)), np.eye(4), np.eye(4)[::-1].copy()):
    weights = {"A": A.astype(np.float32), "B": uniform(rng, 3, 4), "C": uniform(rng, 4, 2), "D": uniform(rng, 3, 2)}
    cases.append((dict(s=uniform(rng, 2, 135, 3), z=uniform(rng, 2, 4)), weights))
check("recurrence/ssm-recurrent", oracle, cases)
