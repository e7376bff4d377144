"""What is wanted of a case: the share of the machine's limit, and how far ahead of the best peer. Goals are aims; the gate of a case
(cases.py) is what it must reach."""


def attention(p):
    n, e = p["N"], p["E"]
    if p["mask"] == "decode" or n == 1:
        return 0.90, 1.4
    if p["mask"] in ("window", "global", "documents"):
        return 0.60, 3.0
    if "relative" in p or "cap" in p or e not in (64, 128):
        return None, None
    if p["mask"] == "causal":
        if n >= 2048:
            return 0.80, 1.5 if n == 2048 else 1.2
        return (0.55, 1.5) if 128 <= n <= 512 else (None, None)
    if n >= 1024:
        return 0.85 if e == 64 else 0.88, 1.2
    return (0.70, 1.1) if n >= 128 else (None, None)


def recurrence(p):
    """Of a step, the bandwidth of its state and weights; of prefixes, a plain copy's speed."""
    key, n = p["key"], p["sets"].get("N", 0)
    named = {"lstm": (None, 1.0), "gru": (None, 1.0), "gru-behind": (None, 1.0), "gla": (None, 3.0), "channel-gates": (0.42, 3.0),
             "delta-rule": (0.52, 3.0), "gated-delta": (0.52, 3.0), "mamba": (0.65, None), "mamba-scan": (0.65, 3.0),
             "prefix-sums-of-rows": (0.90, None), "prefix-sums-over-rows": (0.95, None), "log-sum-exp-of-rows": (0.75, None),
             "log-sum-exp-over-rows": (0.75, None)}
    if key.endswith("-step"):
        return 0.80, None
    return named.get(key, (0.65 if n < 16384 else 0.50, 3.0))


def generate(p):
    """Of a step in f32 a share of the bandwidth, in halves a time of 0.58 of that, for half of the bytes; of a long prefill a share of the multiply-adds."""
    if p["what"] == "prefill":
        return 0.80 if p["N"] >= 512 else None, 1.0
    return 0.85 if p["type"] == "f32" else 0.85 * 0.5 / 0.58, 1.0


def gpu(kind, p):
    """Of the f32 peak, or of the bandwidth of the device's memory."""
    if kind == "attention" and p["N"] > 1:
        return 0.40 if "cap" in p else {"full": 0.50, "causal": 0.45, "window": 0.35, "documents": 0.35}[p["mask"]]
    if kind == "gemm" and p["N"] > 1:
        return 0.65
    return 0.80 if kind not in ("encoder", *GPU_SECONDS) else None


# At most, of one kernel of a chain of tiny ones, and of a model's opening and first call when its kernels have been compiled before.
GPU_SECONDS = {"launch": 6e-6, "open": 0.2}


def goal(case):
    """(share of the limit, ratio to the best peer) that is aimed at; None where none is named."""
    group, p = case["group"], case["params"]
    if group in ("attention", "decode"):
        return attention(p)
    if group == "gemm":
        return 0.92 if p["N"] > 16 else None, 1.1
    if group == "linear":
        return 0.60, None
    if group == "encoder" and p["B"] == 1:
        return 0.85, 1.25 if p["D"] == 768 else 1.7 if p["N"] == 128 else None
    if group == "zoo":
        return 0.50, 1.3
    if group == "recurrence":
        return recurrence(p)
    if group == "generate":
        return generate(p)
    if group == "gpu":
        return gpu(case["kind"], p), None
    return None, None
