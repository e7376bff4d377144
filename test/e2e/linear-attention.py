# RUN: %python %s %heed_bin/heedc %t
"""Linear attention, as recurrences and as causal sums, in every spelling that is to be recognised, against a float64 loop in NumPy: lengths
about one chunk and several, decays of 0, 1 and e^-200, states given and asked for, steps that a length leaves out. What must be chunked says so.
A NaN enters no output before its step."""
import sys

import numpy as np

import programs
from runs import finish

programs.start(*sys.argv[1:])
rng = np.random.default_rng(1620)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
LENGTHS = [0, 1, 2, 16, 17, 63, 64, 65, 128, 130, 300]
#: B, H, E, F beside the length.
SIZES = [(1, 1, 1, 1), (2, 3, 4, 7), (1, 2, 16, 33)]


def recurrence(q, k, v, decay=None, S=None, before=False, erase=None):
    """q, k, erase [B, H, N, E], v [B, H, N, F], decay [B, H, N, E] or [B, H, N] or less: the outputs [B, H, N, F] and the last state."""
    B, H, N, E = q.shape
    S = np.zeros((B, H, E, v.shape[-1])) if S is None else S.astype(np.float64)
    decay = np.asarray(1.0 if decay is None else decay)
    decay = np.broadcast_to(decay if decay.ndim == 4 else decay[..., None], (B, H, N, E))
    o = np.zeros(v.shape)
    for t in range(N):
        u = v[:, :, t] - (0 if erase is None else np.einsum("bhe,bhef->bhf", erase[:, :, t], S))
        new = decay[:, :, t, :, None] * S + k[:, :, t, :, None] * u[:, :, None, :]
        o[:, :, t] = np.einsum("bhe,bhef->bhf", q[:, :, t], S if before else new)
        S = new
    return o, S


def turn(x):
    """[B, N, H, E] as [B, H, N, E], and back."""
    return x.swapaxes(1, 2)


elu1 = lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
QKV = "q, k: f32[B, H, N, E], v: f32[B, H, N, F]"
STATE = "scan t in 0..N, S: f32[B, H, E, F] = 0"
SUM = "o[b,h,t,f] = sum(e) q[b,h,t,e] * S[b,h,e,f]"
#: name -> source, inputs besides q, k and v by name, float64 arrays -> the results.
CASES = {}


def case(source, **extra):
    def add(oracle):
        CASES[oracle.__name__] = (source, extra, oracle)
        return oracle
    return add


@case(f"model m({QKV}) {{ {STATE} {{ S[b,h,e,f] = S[b,h,e,f] + k[b,h,t,e] * v[b,h,t,f]\n {SUM} }}\n return o, S }}")
def plain(q, k, v):
    o, S = recurrence(q, k, v)
    return dict(o=o, S=S)


@case(f"model m({QKV}; gamma: f32[H]) {{ {STATE} {{ S[b,h,e,f] = gamma[h] * S[b,h,e,f] + k[b,h,t,e] * v[b,h,t,f]\n {SUM} }}\n return o, S }}",
      gamma=lambda B, H, N, E, F: np.float32([0.97, 0, 1][:H]))
def retention(q, k, v, gamma):
    o, S = recurrence(q, k, v, gamma[:, None])
    return dict(o=o, S=S)


@case(f"""model m({QKV}; g: f32[B, H, N], S0: f32[B, H, E, F]) {{
  scan t in 0..N, S: f32[B, H, E, F] = S0 {{
    o[b,h,t,f] = sum(e) S[b,h,e,f] * q[b,h,t,e] / sqrt(E)
    S[b,h,e,f] = v[b,h,t,f] * k[b,h,t,e] + S[b,h,e,f] * exp(g[b,h,t])
  }}
  return o, S
}}""", g=lambda B, H, N, E, F: np.where(uniform(B, H, N) > 0.8, -200, np.where(uniform(B, H, N) > 0.8, 0, uniform(B, H, N) - 1)).astype(np.float32),
      S0=lambda B, H, N, E, F: uniform(B, H, E, F))
def gates_before(q, k, v, g, S0):
    o, S = recurrence(q, k, v, np.exp(g), S0, before=True)
    return dict(o=o / np.sqrt(q.shape[-1]), S=S)


@case("""fn phi(x) = elu(x) + 1
model m(q, k: f32[B, N, H, E], v: f32[B, N, H, F]; length: i32[B]) {
  scan t in 0..N, S: f32[B, H, E, F] = 0, z: f32[B, H, E] = 0 {
    S[b,h,e,f] = if t < length[b] then S[b,h,e,f] + phi(k[b,t,h,e]) * v[b,t,h,f] else S[b,h,e,f]
    z[b,h,e] = z[b,h,e] + (if t < length[b] then phi(k[b,t,h,e]) else 0)
    o[b,t,h,f] = (sum(e) phi(q[b,t,h,e]) * S[b,h,e,f]) / (1 + sum(e) phi(q[b,t,h,e]) * z[b,h,e])
  }
  return o, z
}""", length=lambda B, H, N, E, F: rng.integers(0, N + 1, B).astype(np.int32))
def normalised_rows_last(q, k, v, length):
    q, k, v = turn(q), turn(k), turn(v)
    k = elu1(k) * (np.arange(k.shape[2]) < length[:, None])[:, None, :, None]
    ones = np.ones(v.shape[:-1] + (1,))
    (o, _), (n, z) = recurrence(elu1(q), k, np.nan_to_num(v)), recurrence(elu1(q), k, ones)
    return dict(o=turn(o / (1 + n)), z=z[..., 0])


@case(f"""model m({QKV}; W: f32[F, D]) {{
  scan t in 0..N, S: f32[B, H, F, E] = 0 {{
    S[b,h,f,e] = 0.5 * (S[b,h,f,e] - v[b,h,N-1-t,f] * k[b,h,N-1-t,e])
    r[b,h,f] = sum(e) q[b,h,N-1-t,e] * S[b,h,f,e]
    o[b,h,d,N-1-t] = tanh(sum(f) W[f,d] * r[b,h,f])
  }}
  return o, S
}}""", W=lambda B, H, N, E, F: uniform(F, 5))
def reversed_projected(q, k, v, W):
    back = lambda x: x[:, :, ::-1]
    o, S = recurrence(back(q), back(k), -0.5 * back(v), 0.5)
    return dict(o=np.tanh(np.einsum("bhtf,fd->bhdt", back(o), W)), S=S.swapaxes(2, 3))


@case(f"model m({QKV}) {{ a[b,h,i,j] = sum(e) q[b,h,i,e] * k[b,h,j,e]\n"
      "return o[b,h,i,f] = sum(j where j <= i) a[b,h,i,j] * v[b,h,j,f] }")
def causal_sum(q, k, v):
    return dict(o=recurrence(q, k, v)[0])


@case("""fn phi(x) = elu(x) + 1
model m(q, k: f32[B, N, H, E], v: f32[B, N, H, F]) {
  a[b,h,i,j] = sum(e) phi(q[b,i,h,e]) * phi(k[b,j,h,e]) / 8
  n[b,h,i] = sum(j where i >= j) a[b,h,i,j]
  return o[b,i,h,f] = (sum(j where i >= j) a[b,h,i,j] * v[b,j,h,f]) / (n[b,h,i] + 1)
}""")
def causal_sum_normalised(q, k, v):
    q, k, v = turn(q), elu1(turn(k)) / 8, turn(v)
    ones = np.ones(v.shape[:-1] + (1,))
    return dict(o=turn(recurrence(elu1(q), k, v)[0] / (1 + recurrence(elu1(q), k, ones)[0])))


@case(f"model m({QKV}; c: f32[B, N]) {{ return o[b,h,i,f] = sum(j where i > j) v[b,h,j,f] * c[b,j] * (sum(e) q[b,h,i,e] * k[b,h,j,e]) * c[b,i] }}",
      c=lambda B, H, N, E, F: uniform(B, N))
def causal_sum_strict(q, k, v, c):
    return dict(o=recurrence(q, k, v * c[:, None, :, None], before=True)[0] * c[:, None, :, None])


@case("""model m(q, k: f32[B, N, H, E], v: f32[B, N, H, F]; gamma: f32[H]) {
  D[h:H,i:N,j:N] = gamma[h]^(i - j)
  a[b,h,i,j] = (sum(e) q[b,i,h,e] * k[b,j,h,e]) * D[h,i,j]
  return o[b,i,h,f] = (sum(j where j <= i) a[b,h,i,j] * v[b,j,h,f]) / 8
}""", gamma=lambda B, H, N, E, F: np.float32([0.97, 0, 1][:H]))
def causal_sum_powers(q, k, v, gamma):
    return dict(o=turn(recurrence(turn(q), turn(k), turn(v), gamma[:, None])[0] / 8))


@case(f"""model m({QKV}; gamma: f32[H]) {{
  o[b,h,i,f] = sum(j where j < i) (sum(e) q[b,h,i,e] * k[b,h,j,e]) * gamma[h]^(i - j) * v[b,h,j,f]
  p[b,h,i,f] = sum(j where i > j) (sum(e) q[b,h,i,e] * k[b,h,j,e]) * gamma[h]^(i - j - 1) * v[b,h,j,f]
  return o, p
}}""", gamma=lambda B, H, N, E, F: np.float32([0.9, 1, 0.5][:H]))
def causal_sum_powers_strict(q, k, v, gamma):
    p = recurrence(q, k, v, gamma[:, None], before=True)[0]
    return dict(o=gamma[:, None, None] * p, p=p)


@case(f"""model m({QKV}; g: f32[H]) {{
  o[b,h,i,f] = sum(j where j <= i) exp(-g[h] * (i - j) / 2) * (sum(e) q[b,h,i,e] * k[b,h,j,e]) * v[b,h,j,f]
  p[b,h,i,f] = sum(j where j < i) (sum(e) q[b,h,i,e] * k[b,h,j,e]) * v[b,h,j,f] * exp(-((i - j) * g[h] / 2))
  return o, p
}}""", g=lambda B, H, N, E, F: np.float32([0.1, 200, 0][:H]))
def causal_sum_rates(q, k, v, g):
    decay = np.exp(-g[:, None] / 2)
    o, p = (recurrence(q, k, v, decay, before=before)[0] for before in (False, True))
    return dict(o=o, p=decay[..., None] * p)


@case(f"""model m(q, k: f32[B, N, E], v: f32[B, H, N, F]; g: f32[B, H, N]) {{
  c[b,h,i:N] = sum(w where w <= i) -abs(g[b,h,w])
  a[b,i,j] = sum(e) q[b,i,e] * k[b,j,e]
  o[b,h,i,f] = sum(j where j <= i) a[b,i,j] * exp(c[b,h,i] - c[b,h,j]) * v[b,h,j,f]
  p[b,h,i,f] = sum(j where j < i) exp(c[b,h,i] - c[b,h,j]) * a[b,i,j] * v[b,h,j,f]
  return o, p
}}""", q=lambda B, H, N, E, F: uniform(B, N, E), k=lambda B, H, N, E, F: uniform(B, N, E),
      g=lambda B, H, N, E, F: np.where(uniform(B, H, N) > 0.9, -50, uniform(B, H, N)).astype(np.float32))
def causal_sum_cumulative(q, k, v, g):
    heads = lambda x: np.broadcast_to(x[:, None], v.shape[:3] + x.shape[-1:])
    decay = np.exp(-np.abs(g))
    o, p = (recurrence(heads(q), heads(k), v, decay, before=before)[0] for before in (False, True))
    return dict(o=o, p=decay[..., None] * p)


# Delta rules: what the state holds for a key is taken off the value. Divided by E, keys let no state grow.


@case(f"""model m({QKV}; beta: f32[B, H, N]) {{
  {STATE} {{
    d[b,h,f] = v[b,h,t,f] - (sum(c) k[b,h,t,c] * S[b,h,c,f])
    S[b,h,e,f] = S[b,h,e,f] + beta[b,h,t] / E * k[b,h,t,e] * d[b,h,f]
    {SUM}
  }}
  return o, S
}}""", beta=lambda B, H, N, E, F: np.abs(uniform(B, H, N)))
def delta_rule(q, k, v, beta):
    rate = beta[..., None] / k.shape[-1]
    o, S = recurrence(q, k, rate * v, erase=rate * k)
    return dict(o=o, S=S)


@case(f"""model m({QKV}; g: f32[B, H, N], S0: f32[B, H, E, F]) {{
  scan t in 0..N, S: f32[B, H, E, F] = S0 {{
    o[b,h,t,f] = sum(e) q[b,h,t,e] * S[b,h,e,f]
    P[b,h,e,f] = exp(g[b,h,t]) * S[b,h,e,f]
    S[b,h,e,f] = P[b,h,e,f] - k[b,h,t,e] * (sum(c) k[b,h,t,c] * P[b,h,c,f]) / E + k[b,h,t,e] * v[b,h,t,f] / E
  }}
  return o, S
}}""", g=CASES["gates_before"][1]["g"], S0=CASES["gates_before"][1]["S0"])
def delta_rule_gated(q, k, v, g, S0):
    E = k.shape[-1]
    o, S = recurrence(q, k, v / E, np.exp(g), S0, before=True, erase=np.exp(g)[..., None] * k / E)
    return dict(o=o, S=S)


@case("""model m(q, k: f32[B, N, H, E], v: f32[B, N, H, F]; r: f32[B, N, E], gamma: f32[H]) {
  scan t in 0..N, S: f32[B, F, H, E] = 0 {
    held[b,h,f] = sum(e) S[b,f,h,e] * r[b,N-1-t,e]
    S[b,f,h,e] = gamma[h] * S[b,f,h,e] - k[b,N-1-t,h,e] / E * (2 * held[b,h,f] - v[b,N-1-t,h,f])
    o[b,N-1-t,h,f] = sum(e) q[b,N-1-t,h,e] * S[b,f,h,e]
  }
  return o, S
}""", r=lambda B, H, N, E, F: uniform(B, N, E), gamma=lambda B, H, N, E, F: np.float32([0.9, 0, 1][:H]))
def delta_rule_reversed(q, k, v, r, gamma):
    back = lambda x: turn(x)[:, :, ::-1]
    o, S = recurrence(back(q), back(k) / k.shape[-1], back(v), gamma[:, None], erase=2 * back(r[:, :, None]))
    return dict(o=turn(o[:, :, ::-1]), S=np.einsum("bhef->bfhe", S))


# Decays of each channel of the keys.


def channel_gates(B, H, N, E, F):
    drawn = uniform(B, H, N, E)
    return np.select([drawn > 0.95, drawn > 0.9, drawn > 0.8], [-np.inf, -200, 0], drawn - 1.5).astype(np.float32)


@case(f"""model m({QKV}; g: f32[B, H, N, E], S0: f32[B, H, E, F]) {{
  scan t in 0..N, S: f32[B, H, E, F] = S0 {{
    S[b,h,e,f] = exp(g[b,h,t,e]) * S[b,h,e,f] + k[b,h,t,e] * v[b,h,t,f]
    {SUM}
  }}
  return o, S
}}""", g=channel_gates, S0=CASES["gates_before"][1]["S0"])
def channels(q, k, v, g, S0):
    o, S = recurrence(q, k, v, np.exp(g), S0)
    return dict(o=o, S=S)


@case("""model m(q, k: f32[B, N, H, E], v: f32[B, N, H, F]; gamma: f32[H, E], a: f32[B, N, E]) {
  scan t in 0..N, S: f32[B, F, H, E] = 0 {
    o[b,N-1-t,h,f] = sum(e) q[b,N-1-t,h,e] * S[b,f,h,e] / E
    S[b,f,h,e] = gamma[h,e] * (S[b,f,h,e] * a[b,N-1-t,e] + k[b,N-1-t,h,e] * v[b,N-1-t,h,f])
  }
  return o, S
}""", gamma=lambda B, H, N, E, F: np.abs(uniform(H, E)), a=lambda B, H, N, E, F: 1 - np.abs(uniform(B, N, E)) ** 3)
def channels_before(q, k, v, gamma, a):
    back, own = lambda x: turn(x)[:, :, ::-1], gamma[:, None, :]
    o, S = recurrence(back(q) / q.shape[-1], own * back(k), back(v), own * back(a[:, :, None]), before=True)
    return dict(o=turn(o[:, :, ::-1]), S=np.einsum("bhef->bfhe", S))


@case(f"""model m({QKV}; gamma: f32[H, E]) {{ {STATE} {{
    S[b,h,e,f] = S[b,h,e,f] * gamma[h,e] + k[b,h,t,e] * v[b,h,t,f]
    {SUM}
  }}
  return o, S
}}""", gamma=lambda B, H, N, E, F: np.where(uniform(H, E) > 0.5, np.float32(1), np.abs(uniform(H, E))))
def channels_constant(q, k, v, gamma):
    o, S = recurrence(q, k, v, gamma[None, :, None])
    return dict(o=o, S=S)


@case(f"""model m({QKV}; g: f32[B, H, N, E], u: f32[H, E]) {{ {STATE} {{
    o[b,h,t,f] = sum(e) q[b,h,t,e] * (S[b,h,e,f] - u[h,e] * k[b,h,t,e] * v[b,h,t,f])
    S[b,h,e,f] = exp(g[b,h,t,e]) * S[b,h,e,f] + k[b,h,t,e] * v[b,h,t,f]
  }}
  return o, S
}}""", g=channel_gates, u=lambda B, H, N, E, F: uniform(H, E))
def channels_bonus(q, k, v, g, u):
    o, S = recurrence(q, k, v, np.exp(g), before=True)
    return dict(o=o - np.einsum("bhte,he,bhte,bhtf->bhtf", q, u, k, v), S=S)


@case(f"""model m({QKV}; g: f32[B, H, N, E], beta: f32[B, H, N]) {{
  {STATE} {{
    P[b,h,e,f] = exp(g[b,h,t,e]) * S[b,h,e,f]
    S[b,h,e,f] = P[b,h,e,f] + beta[b,h,t] / E * k[b,h,t,e] * (v[b,h,t,f] - (sum(c) k[b,h,t,c] * P[b,h,c,f]))
    {SUM}
  }}
  return o, S
}}""", g=channel_gates, beta=CASES["delta_rule"][1]["beta"])
def delta_rule_channels(q, k, v, g, beta):
    rate = beta[..., None] / k.shape[-1]
    o, S = recurrence(q, k, rate * v, np.exp(g), erase=rate * k * np.exp(g))
    return dict(o=o, S=S)


def inputs(name, extra, B, H, N, E, F):
    shape = lambda d: (B, N, H, d) if "[B, N, H, E]" in CASES[name][0] else (B, H, N, d)
    given = dict(q=uniform(*shape(E)), k=uniform(*shape(E)), v=uniform(*shape(F)))
    given |= {key: make(B, H, N, E, F) for key, make in extra.items()}
    if "length" in given:  # what is left out may be anything
        for b, end in enumerate(given["length"]):
            given["v"][b, end:] = np.nan
    return given


float64 = lambda given: {key: x.astype(np.float64) if x.dtype == np.float32 else x for key, x in given.items()}
CHUNK = {name: 16 if "channels" in name else 64 for name in CASES}
for name, (source, extra, oracle) in CASES.items():
    program = programs.compile(name, source, "--explain=all", says=f"chunked: products within {CHUNK[name]} steps")
    slow = programs.compile(name + "-reference", source, "--backend=reference")
    for n in LENGTHS:
        for B, H, E, F in SIZES if n in (2, 65) else SIZES[-1:]:
            given = inputs(name, extra, B, H, n, E, F)
            programs.compare(program, given, oracle(**float64(given)))
            if n <= 65:
                programs.compare(slow, given, oracle(**float64(given)))

# Columns that are known to be short enough for the first cache stay there over the steps: over 512 where their number is not known, so that few sums are
# rounded. What reads the state before a step has chunks.
for name, (source, extra, oracle) in CASES.items():
    erases, before = "delta_rule" in name, any(x in name for x in ("before", "strict", "bonus"))
    says = "sequential: columns" if erases else f"chunked: products within {CHUNK[name]} steps" if before else "sequential within 512 steps"
    program = programs.compile(name + "-columns", source, "--set=E=16", "--set=F=17", "--explain=all", says=says)
    for n in (0, 1, 2, 7, 64, 65, 150) + ((512, 1030) if "512" in says else ()):
        given = inputs(name, extra, 2, 3, n, 16, 17)
        programs.compare(program, given, oracle(**float64(given)))
FORMS = [("", 8, 8), ("-columns", 16, 17)]

# Sizes that are known: one step, as many as a chunk has at most, chunks that all have as many, and a rest.
for n in [1, 10, 48, 192, 100]:
    for name in ["plain", "retention", "gates_before", "delta_rule", "delta_rule_gated", "channels", "delta_rule_channels"]:
        source, extra, oracle = CASES[name]
        for F, long in ((32, "sequential: columns"), (9, "chunked")):
            form = "one step" if n == 1 else f"parallel: {n} steps" if n <= CHUNK[name] else long
            program = programs.compile(f"{name}-{n}", source, f"--set=N={n}", "--set=E=16", f"--set=F={F}", "--explain=all", says=form)
            given = inputs(name, extra, 2, 3, n, 16, F)
            programs.compare(program, given, oracle(**float64(given)))
# How many steps may be added to one state, and how long columns may be.
for form, sizes in {"sequential: columns": (2048, 64), "sequential within 512": (2049, 64), "chunked": (2049, 65)}.items():
    programs.compile(form.split()[-1], CASES["retention"][0], *(f"--set={name}={size}" for name, size in zip("NEF", (*sizes, 16))), "--explain=all", says=form)
# Few steps cost less as pairs.
programs.compile("few", CASES["causal_sum"][0], "--set=N=48", "--set=E=32", "--set=F=32", "--explain=all", says="there are few steps")

# A NaN or an infinity of a step is seen from it on.
for name in ["plain", "retention", "causal_sum", "causal_sum_strict"]:
    source, extra, oracle = CASES[name]
    for form, E, F in FORMS:
        given = inputs(name, extra, 1, 1, 150, E, F)
        given["v"][0, 0, 70, 3] = np.nan
        given["k"][0, 0, 100, 2] = np.inf
        given["q"][0, 0, 0, 1] = np.nan  # a query that sees no key is nothing
        with np.errstate(invalid="ignore"):
            want = oracle(**float64(given))
        if name == "causal_sum_strict":
            want["o"][0, 0, 0] = 0
        programs.compare(programs.folder + "/" + name + form, given, want)
# Powers of a NaN leave the first query alone, which sees a power of 0.
for form, E, F in FORMS:
    given = inputs("causal_sum_powers", CASES["causal_sum_powers"][1], 1, 2, 150, E, F)
    given["gamma"][1] = np.nan
    want = causal_sum_powers(**float64(given))
    want["o"][0, 0, 1] = given["q"][0, 0, 1] @ given["k"][0, 0, 1] * given["v"][0, 0, 1] / 8
    programs.compare(programs.folder + "/causal_sum_powers" + form, given, want)
for name in ["delta_rule", "delta_rule_reversed", "delta_rule_channels", "channels", "channels_before"]:
    source, extra, oracle = CASES[name]
    for form, E, F in FORMS:
        given = inputs(name, extra, 1, 1, 150, E, F)
        axis = 2 if given["q"].shape[2] == 150 else 1
        np.moveaxis(given["v"], axis, 0)[70, 0, 0, 3] = np.nan
        np.moveaxis(given["k"], axis, 0)[100, 0, 0, 2] = np.nan
        with np.errstate(invalid="ignore"):
            programs.compare(programs.folder + "/" + name + form, given, oracle(**float64(given)))
# What a decay of the first step leaves of zeros is NaN, if it is NaN or infinite.
for name in ["retention", "gates_before", "channels_constant", "channels", "channels_before", "delta_rule_channels"]:
    source, extra, oracle = CASES[name]
    for length in (1, 40, 150):
        for bad in (np.nan, np.inf):
            for form, E, F in FORMS:
                given = inputs(name, extra, 1, 1, length, E, F)
                if "S0" in given:
                    given["S0"][...] = 0
                given["a" if "a" in given else "g" if "g" in given else "gamma"].reshape(-1)[{"channels_before": -3}.get(name, 0)] = bad
                with np.errstate(invalid="ignore"):
                    programs.compare(programs.folder + "/" + name + form, given, oracle(**float64(given)))
# A step that a length leaves out keeps what its state is, and is none of a key of 0.
programs.compile("delta-left-out", CASES["delta_rule"][0].replace("S[b,h,e,f] = S", "S[b,h,e,f] = if beta[b,h,t] < 0 then S[b,h,e,f] else S"), "--explain=all",
                 says="step by step")
given = {key: np.abs(x) for key, x in inputs("causal_sum", {}, 1, 1, 20, 4, 4).items()}
given["q"][0, 0, 3, 1] = np.inf  # no product with a state of zeros
programs.compare(programs.folder + "/causal_sum", given, causal_sum(**float64(given)))
# With a condition on keys a query may see none, which a state does not tell.
programs.compile("condition", CASES["causal_sum"][0].replace("j <= i", "j <= i and k[b,0,j,0] > 0"), "--explain=all", says="raised to one attention")

# Many steps: what a state loses is lost step by step.
given = dict(q=uniform(1, 1, 2**17, 2), k=uniform(1, 1, 2**17, 2), v=uniform(1, 1, 2**17, 3), gamma=np.float32([0.9995]))
programs.compare(programs.folder + "/retention", given, retention(**float64(given)), tolerance=3e-5)
# Behind 256 chunks the state is carried as f64.
for name in ["plain", "retention", "gates_before", "reversed_projected", "channels", "channels_before"]:
    source, extra, oracle = CASES[name]
    given = inputs(name, extra, 1, 2, 256 * CHUNK[name] + CHUNK[name] + 5, 3, 4)
    programs.compare(programs.folder + "/" + name, given, oracle(**float64(given)))
# Where nothing is lost, sums of equal products are always rounded the same way: by parts in a million, however many they are.
N = 2**19
full = lambda *shape: np.full(shape, 0.1, np.float32)
given = dict(q=full(1, 1, N, 16), k=full(1, 1, N, 16), v=full(1, 1, N, 17))
tenth = np.float64(np.float32(0.1))
want = dict(o=np.broadcast_to(tenth**3 * 16 * np.arange(1, N + 1)[:, None], (1, 1, N, 17)), S=np.full((1, 1, 16, 17), tenth**2 * N))
for form in ("", "-columns"):
    programs.compare(programs.folder + "/plain" + form, given, want, tolerance=7e-6)
    programs.compare(programs.folder + "/retention" + form, {**given, "gamma": np.float32([1])}, want, tolerance=7e-6)
# So are their normalisers, and sums of a step's own.
given = dict(q=np.zeros((1, N, 1, 3), np.float32), k=full(1, N, 1, 3), v=full(1, N, 1, 2))
count = np.arange(1, N + 1) * 3 * (tenth + 1) / 8
programs.compare(programs.folder + "/causal_sum_normalised", given, dict(o=np.broadcast_to(tenth * (count / (1 + count))[:, None, None], (1, N, 1, 2))),
                 tolerance=7e-6)
scan = "model m(x: f32[N, D]) { scan t in 0..N, m: f32[D] = 0 { m[d] = m[d] + x[t,d]\n y[t,d] = m[d] }\n return y, m }"
programs.compare(programs.compile("sums", scan), dict(x=full(N, 3)), dict(y=np.cumsum(np.full((N, 3), tenth), 0), m=np.full(3, N * tenth)), tolerance=2e-7)
finish()
