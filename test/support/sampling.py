"""Sampling and beam search in NumPy's float64: the oracle of heed_sampler and of --generate."""
import itertools

import numpy as np


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011)."""
    x, key = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(b >> 32) ^ x[1] ^ key[0], b & 0xFFFFFFFF, (a >> 32) ^ x[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x


def uniform(seed, row, position):
    """The number from 0 to 1 that row draws at a position."""
    def words(x):
        return [x & 0xFFFFFFFF, x >> 32]

    x = philox(words(position) + words(row), words(seed))
    return ((x[0] << 32 | x[1]) >> 11) / 2**53


def penalised(scores, seen, penalty):
    s = np.array(scores, np.float64)
    for token in set(seen):
        s[token] = s[token] * penalty if s[token] < 0 else s[token] / penalty
    return s


def probabilities(logits, seen, temperature, top_k, top_p, min_p, penalty):
    """What is drawn from, in the order of transformers: penalty, temperature, top-k, top-p, min-p."""
    s = penalised(logits, seen, penalty)
    if temperature == 0:
        return np.eye(len(s))[s.argmax()]
    s /= temperature
    if top_k:
        s[s < np.sort(s)[-min(top_k, len(s))]] = -np.inf
    p = lambda: np.exp(s - s.max()) / np.exp(s - s.max()).sum()
    if top_p < 1:
        order = np.argsort(-s, kind="stable")
        before = np.cumsum(p()[order]) - p()[order]
        s[order[1:][before[1:] >= top_p]] = -np.inf
    if min_p:
        s[p() < min_p * p().max()] = -np.inf
    return p()


def draw(logits, seen, seed, row, temperature=0, top_k=0, top_p=1, min_p=0, penalty=1):
    """The token after those that were seen, and how far the draw (or the largest logit) is from another one."""
    p = probabilities(logits, seen, temperature, top_k, top_p, min_p, penalty)
    if temperature == 0:
        s = np.sort(penalised(logits, seen, penalty))
        return int(p.argmax()), s[-1] - s[-2]
    u, edges = uniform(seed, row, len(seen)), np.cumsum(p)
    edges /= edges[-1]
    return int(np.searchsorted(edges, u, side="right")), np.abs(edges[:-1] - u).min()


def log_softmax(x):
    x = np.asarray(x, np.float64)
    return x - x.max() - np.log(np.exp(x - x.max()).sum())


def exhaustive(logits_of, prompt, vocabulary, length, stop, length_penalty):
    """The best of all continuations that end with a stop id or have `length` tokens: tokens, score, and what the second best is behind."""
    found = []

    def extend(tokens, score):
        for token, more in enumerate(log_softmax(logits_of(prompt + tokens))):
            new = tokens + [token]
            if token in stop or len(new) == length:
                found.append(((score + more) / len(new) ** length_penalty, new))
            else:
                extend(new, score + more)

    extend([], 0.0)
    found.sort(key=lambda one: -one[0])
    return found[0][1], found[0][0], found[0][0] - found[1][0]


def beam_search(logits_of, prompt, beams, length, stop, length_penalty, penalty=1):
    """As transformers' generate() with early_stopping=False, for one prompt."""
    running, finished = [(0.0, [])], []
    for step in range(1, length + 1):
        candidates = []
        for (score, tokens) in running:
            more = penalised(log_softmax(logits_of(prompt + tokens)), prompt + tokens, penalty)
            candidates += [(score + m, tokens + [t]) for t, m in enumerate(more)]
        candidates = sorted(candidates, key=lambda one: -one[0])[:max(2, 1 + len(stop)) * beams]
        ends = [one[1][-1] in stop or step == length for one in candidates]
        finished += [(one[0] / step ** length_penalty, one[1]) for rank, one in enumerate(candidates) if ends[rank] and rank < beams]
        finished = sorted(finished, key=lambda one: -one[0])[:beams]
        running = list(itertools.islice((one for one, end in zip(candidates, ends) if not end), beams))
        if not running or (len(finished) == beams and running[0][0] / step ** length_penalty <= finished[-1][0]):
            break
    return finished[0][1], finished[0][0]
