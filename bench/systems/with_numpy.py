"""NumPy, with the BLAS of its wheel (OpenBLAS): for small cases and plain products."""
import numpy as np

import cases

LARGEST = 1 << 22  # scores of an attention that are stored at once


class System:
    name = "numpy"

    def __init__(self, threads):
        self.threads = threads

    def version(self):
        try:
            blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
            return f"{np.__version__}, {blas['name']} {blas['version']}"
        except (KeyError, TypeError):
            return np.__version__

    def variants(self, case, inputs, weights):
        make = getattr(self, case["kind"], None)
        run = make(case["params"], inputs, weights) if make else None
        if not run:
            return {}
        kept = {}

        def timed():
            kept["y"] = run()

        return {"numpy": lambda: (timed, lambda: kept["y"])}

    def attention(self, p, inputs, weights):
        if p["B"] * p["H"] * p["N"] * p["M"] > LARGEST or "relative" in p or "cap" in p:
            return None
        q, k, v = inputs["q"], inputs["k"], inputs["v"]
        one = p["mask"] == "decode"
        if one:
            q = q[:, :, None, :]
        if p["G"] != p["H"]:
            q = q.reshape(p["B"], p["G"], -1, p["E"])
        mask = cases.live(p) if p["N"] > 1 else None
        scale = np.float32(p["E"]**-0.5)

        def run():
            s = (q * scale) @ k.swapaxes(-1, -2)
            if mask is not None:
                s = np.where(mask, s, -np.inf)
            s -= s.max(-1, keepdims=True)
            np.exp(s, out=s)
            s /= s.sum(-1, keepdims=True)
            y = s @ v
            return y.reshape(p["B"], p["H"], p["E"]) if one else y

        return run

    def gemm(self, p, inputs, weights):
        x, w = inputs["x"], weights["weight"].T
        y = np.empty((p["N"], p["O"]), np.float32)
        if p["epilogue"] == "product":
            return lambda: np.matmul(x, w, out=y)
        if p["epilogue"] == "bias":
            return lambda: np.add(np.matmul(x, w, out=y), weights["bias"], out=y)
        if p["epilogue"] == "bias_residual":
            return lambda: np.add(np.add(np.matmul(x, w, out=y), weights["bias"], out=y), inputs["r"], out=y)
        return None
