# RUN: %python %s heedc
"""Xiao and Zhu 2023, section 5.9: s_a s_A (Q(a) . Q(A)) in integers, s_a = max |a| / 127 of the whole call. The sum of many products of 127 x 127 must
not leave i32's exact range nor f32's; the result stays within s_a s_A bounds of the real product."""
import numpy as np
from zoo import check, uniform


def oracle(inputs, weights):
    a, A, sA = inputs["a"].astype(np.float64), inputs["A"], inputs["sA"].astype(np.float64)
    sa = np.abs(a).max(initial=0) / 127
    q = np.rint(a / sa).astype(np.int64) if sa > 0 else np.zeros(a.shape, np.int64)
    y = np.zeros((len(a), A.shape[1]))
    for n, m in np.ndindex(*y.shape):
        y[n, m] = sa * sA[m] * int(q[n] @ A[:, m].astype(np.int64))
    error = np.abs(y - a @ (A * sA)).max(initial=0)
    assert error <= sa / 2 * (np.abs(A.astype(np.float64)) * sA).sum(0).max(initial=0) * (1 + 1e-9)
    return {"y": y}


def off_ties(a):
    """Numbers near a tie of round are moved away from it: f32 decides ties as it can."""
    for _ in range(100):
        r = a / (np.abs(a).max(initial=1e-30).astype(np.float64) / 127)
        a = np.where(np.abs(r - np.floor(r) - 0.5) < 1e-3, a * np.float32(0.99), a)
    return a


rng = np.random.default_rng(142)
cases = []
for n, k, m in [(5, 37, 7), (140, 33, 135), (1, 1, 1), (3, 0, 2), (1, 5000, 3)]:
    A = rng.integers(-127, 128, (k, m)).astype(np.int8)
    a = off_ties(uniform(rng, n, k))
    if k == 5000:
        a, A = np.ones((n, k), np.float32), np.full((k, m), 127, np.int8)  # 5000 * 127 * 127 = 80 645 000
        A[0] -= 1
    cases.append((dict(a=a, A=A, sA=uniform(rng, m) + np.float32(1.5)), None))
cases.append((dict(a=np.zeros((2, 4), np.float32), A=cases[0][0]["A"][:4], sA=cases[0][0]["sA"]), None))
check("quantization/int8-matmul", oracle, cases)
