"""A small decoder with a cache, as a model, and its logits in NumPy without one."""
import numpy as np

from runs import expect
from sampling import draw

D, H, L, V = 16, 2, 2, 61

LAYER = """
    for l in 0..L {
      q[b,n,d] = sum(c) x[b,n,c] * wq[l,c,d]
      k[b,n,d] = sum(c) x[b,n,c] * wk[l,c,d]
      v[b,n,d] = sum(c) x[b,n,c] * wv[l,c,d]
      kc[l,b,h,len[b] + n,e] = k[b,n,h*E + e] where n < count[b]
      vc[l,b,h,len[b] + n,e] = v[b,n,h*E + e] where n < count[b]
      s[b,h,i,j:C] = (sum(e) q[b,i,h*E+e] * kc[l,b,h,j,e]) / sqrt(E)
      p[b,h,i,j] = softmax(j where j <= len[b] + i) s[b,h,i,j]
      o[b,i,h,e] = sum(j) p[b,h,i,j] * vc[l,b,h,j,e]
      m[b,n,h*E+e] = o[b,n,h,e]
      x[b,n,d] = x[b,n,d] + sum(c) m[b,n,c] * wo[l,c,d]
    }"""
PARAMS = "param word, head: f32[V, D], wq, wk, wv, wo: f32[L, D, D]"
PLACE = "sin((d + 1) * (len[b] + n) / 3.0)"
DECODER = f"""model decoder(; L = {L}, H = {H}, D = {D}, E = {D // H}) {{
  state kc, vc: f32[L, B, H, C, E], len: i32[B]
  {PARAMS}
  entry peek(x: f32[N]) {{ return y[n] = 2 * x[n] }}
  entry forward(ids: i32[B, N], count: i32[B]) {{
    x[b, n, d] = word[ids[b, n], d] + {PLACE}{LAYER}
    len[b] = len[b] + count[b]
    return logits[b, v] = sum(d) x[b, max(count[b] - 1, 0), d] * head[v, d]
  }}
}}"""
# Without lengths; another result beside the logits, whose shape changes from prompt to step.
PLAIN = DECODER.replace("model decoder", "model plain").replace(", count: i32[B])", ")").replace(" where n < count[b]", "").replace("+ count[b]", "+ N").replace(
    "return logits[b, v] = sum(d) x[b, max(count[b] - 1, 0), d]", "return hidden[b, n, d] = x[b, n, d], logits[b, v] = sum(d) x[b, N - 1, d]")

def draw_weights(rng, vocabulary, scale=1.0):
    shapes = {"word": (vocabulary, D), "head": (vocabulary, D), **{name: (L, D, D) for name in ("wq", "wk", "wv", "wo")}}
    return {name: (scale * rng.standard_normal(shape) / (1 if name in ("word", "head") else 3)).astype(np.float32) for name, shape in shapes.items()}


def softmax(s):
    s = np.exp(s - s.max(-1, keepdims=True))
    return s / s.sum(-1, keepdims=True)


def decoder_logits(w):
    """Those of the last of all tokens, without a cache."""
    def logits(tokens):
        n = len(tokens)
        x = w["word"].astype(np.float64)[tokens] + np.sin((np.arange(D) + 1) * np.arange(n)[:, None] / 3.0)
        heads = lambda y: y.reshape(n, H, D // H).transpose(1, 0, 2)
        for l in range(L):
            q, k, v = (heads(x @ w[name][l]) for name in ("wq", "wk", "wv"))
            s = q @ k.transpose(0, 2, 1) / np.sqrt(D // H)
            s[:, ~np.tri(n, dtype=bool)] = -np.inf
            x = x + (softmax(s) @ v).transpose(1, 0, 2).reshape(n, D) @ w["wo"][l]
        return x[-1] @ w["head"].T
    return logits


def oracle(logits_of, prompt, count, row=0, stop=(), seed=0, past=(), rules=None, **options):
    """The tokens behind a prompt; no choice may be so near that f32 decides another way."""
    tokens = []
    while len(tokens) < count and not (tokens and tokens[-1] in stop):
        seen = list(past) + list(prompt) + tokens
        now = None if rules is None else {"new": len(tokens), "count": count, "stop": stop, **rules}
        token, margin = draw(logits_of(seen), seen, seed, row, rules=now, **options)
        expect(margin > 1e-5, f"the test's choice {len(tokens)} of row {row} lies on an edge")
        tokens.append(token)
    return tokens
