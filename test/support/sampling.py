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


def ruled(scores, seen, new, count, stop=(), ngram=0, words=(), min_length=0, min_new=0, bos=(), eos=(), suppress=(), begin=()):
    """Scores after transformers' processors, in its order; the last `new` of the tokens that were seen are new, and `count` are wanted."""
    s, seen = np.array(scores, np.float64), list(seen)
    banned = set()
    if ngram:
        grams = {}
        for k in range(len(seen) - ngram + 1):
            grams.setdefault(tuple(seen[k:k + ngram - 1]), set()).add(seen[k + ngram - 1])
        banned |= grams.get(tuple(seen[len(seen) - ngram + 1:]), set()) if len(seen) >= ngram else set()
    for word in words:
        if word not in [[id] for id in stop] and seen[len(seen) - len(word) + 1:] == word[:-1] and len(word) <= len(seen) + 1:
            banned.add(word[-1])
    if new < min_new if min_new else len(seen) < min_length:
        banned |= set(stop)
    s[[id for id in banned if id < len(s)]] = -np.inf
    for forced, now in ((bos, len(seen) == 1), (eos, new == count - 1)):
        if len(forced) and now:
            s = np.where(np.isin(np.arange(len(s)), forced), 0.0, -np.inf)
    s[list(suppress)] = -np.inf
    if new == (1 if len(bos) and len(seen) - new == 1 else 0):
        s[list(begin)] = -np.inf
    return s


def probabilities(logits, seen, temperature, top_k, top_p, min_p, penalty, rules=None):
    """What is drawn from, in the order of transformers: penalty, rules, temperature, top-k, top-p, min-p."""
    s = penalised(logits, seen, penalty)
    s = ruled(s, seen, **rules) if rules else s
    if s.max() == -np.inf:
        raise LookupError("no token is left")
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


def draw(logits, seen, seed, row, temperature=0, top_k=0, top_p=1, min_p=0, penalty=1, rules=None):
    """The token after those that were seen, and how far the draw (or the largest logit) is from another one."""
    p = probabilities(logits, seen, temperature, top_k, top_p, min_p, penalty, rules)
    if temperature == 0:
        s = penalised(logits, seen, penalty)
        s = np.sort(ruled(s, seen, **rules) if rules else s)
        return int(p.argmax()), np.inf if s[-2] == -np.inf else s[-1] - s[-2]
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


def gumbel(seed, prompt, position, place):
    """The noise with which the continuations of beams are drawn."""
    words = lambda x: [x & 0xFFFFFFFF, x >> 32]
    x = philox(words(position | (place + 1) << 31) + words(prompt), words(seed))
    return -np.log(-np.log(((x[0] << 32 | x[1]) >> 11) / 2**53 + 2.0**-54))


def warped(scores, kept, temperature, top_k=0, top_p=1, min_p=0):
    """Log probabilities of a beam as its draws see them; `kept` tokens are left at least."""
    s = scores / temperature
    kept = min(kept, len(s))
    order = np.argsort(-s, kind="stable")
    p = lambda: np.exp(s - s.max()) / np.exp(s - s.max()).sum()
    if top_k:
        s[s < s[order[min(max(top_k, kept), len(s)) - 1]]] = -np.inf
    if top_p < 1:
        before = np.cumsum(p()[order]) - p()[order]
        s[[id for rank, id in enumerate(order) if rank >= kept and before[rank] >= top_p]] = -np.inf
    if min_p:
        s[[id for rank, id in enumerate(order) if rank >= kept and p()[id] < min_p * p().max()]] = -np.inf
    return s


def beam_search(logits_of, prompt, beams, length, stop, length_penalty, penalty=1, early=False, rules=None, seed=0, row=0, **sampling):
    """As transformers' generate(), for one prompt; drawn where there is a temperature."""
    running, finished = [(0.0, [])], []
    kept = max(2, 1 + len(stop))
    for step in range(1, length + 1):
        candidates = []
        for beam, (score, tokens) in enumerate(running):
            seen = list(prompt) + tokens
            more = penalised(log_softmax(logits_of(seen)), seen, penalty)
            more = ruled(more, seen, step - 1, length, stop, **rules) if rules else more
            more = warped(more, kept, **sampling) if sampling else more
            noise = lambda t: gumbel(seed, row, len(seen), beam * len(more) + t) if sampling else 0
            candidates += [(score + m, tokens + [t], score + m + noise(t)) for t, m in enumerate(more) if m > -np.inf]
        candidates = sorted(candidates, key=lambda one: -one[2])[:kept * beams]
        candidates = sorted(candidates, key=lambda one: -one[0])
        ends = [one[1][-1] in stop or step == length for one in candidates]
        finished += [(one[0] / step ** length_penalty, one[1]) for rank, one in enumerate(candidates) if ends[rank] and rank < beams]
        finished = sorted(finished, key=lambda one: -one[0])[:beams]
        running = [one[:2] for one in itertools.islice((one for one, end in zip(candidates, ends) if not end), beams)]
        hoped = length if early == "never" and length_penalty > 0 else step
        if not running or (len(finished) == beams and (early is True or running[0][0] / hoped ** length_penalty <= finished[-1][0])):
            break
    return finished[0][1], finished[0][0]
