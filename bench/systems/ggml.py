"""ggml, the tensor library of llama.cpp: its CPU graph, built from source by bench/setup."""
import ctypes as C
import os

import numpy as np

import cases

BUILT = os.path.join(cases.HERE, "..", ".venv-bench", "llama", "bin")
LIBRARY = os.path.join(BUILT, "libggml-cpu.so")
F32, F16 = 0, 1
LARGEST = 1 << 26  # pairs of a mask


class InitParams(C.Structure):
    _fields_ = [("mem_size", C.c_size_t), ("mem_buffer", C.c_void_p), ("no_alloc", C.c_bool)]


class ThreadpoolParams(C.Structure):
    _fields_ = [("cpumask", C.c_bool * 512), ("n_threads", C.c_int), ("prio", C.c_int), ("poll", C.c_uint32),
                ("strict_cpu", C.c_bool), ("paused", C.c_bool)]


def load():
    """libggml-cpu and, through it, libggml-base; all functions give pointers but where said."""
    base = C.CDLL(os.path.join(os.path.dirname(LIBRARY), "libggml-base.so"), mode=C.RTLD_GLOBAL)
    library = C.CDLL(LIBRARY, mode=C.RTLD_GLOBAL)
    for name in ("ggml_init", "ggml_new_tensor", "ggml_mul_mat", "ggml_add", "ggml_mul", "ggml_gelu", "ggml_gelu_erf",
                 "ggml_swiglu_split", "ggml_norm", "ggml_rms_norm", "ggml_soft_max", "ggml_flash_attn_ext", "ggml_new_graph",
                 "ggml_get_data"):
        getattr(base, name).restype = C.c_void_p
    for name in ("ggml_threadpool_new", "ggml_backend_cpu_init"):
        getattr(library, name).restype = C.c_void_p
    return base, library


class System:
    name = "ggml"

    def __init__(self, threads):
        self.base, self.cpu = load()
        params = ThreadpoolParams()
        self.base.ggml_threadpool_params_init(C.byref(params), threads)
        self.pool = C.c_void_p(self.cpu.ggml_threadpool_new(C.byref(params)))
        self.backend = C.c_void_p(self.cpu.ggml_backend_cpu_init())
        self.cpu.ggml_backend_cpu_set_n_threads(self.backend, threads)
        self.cpu.ggml_backend_cpu_set_threadpool(self.backend, self.pool)

    def version(self):
        self.base.ggml_version.restype = C.c_char_p
        return f"{self.base.ggml_version().decode()}, of llama.cpp"

    def variants(self, case, inputs, weights):
        make = getattr(self, case["kind"], None)
        if not make:
            return {}
        p = case["params"]
        found = {"ggml": lambda: self.open(make, p, inputs, weights)}
        if case["kind"] == "attention" and p["N"] == 1 and p["H"] > p["G"]:  # each key is read once
            view = {**p, "H": p["G"], "N": p["H"] // p["G"], "mask": "full"}
            found["grouped view"] = lambda: self.open(make, view, inputs, weights)
        return found

    def open(self, make, params, inputs, weights):
        held = sum(a.nbytes for a in (*inputs.values(), *weights.values()))
        pairs = params.get("N", 0) * params.get("M", 0)
        self.context = C.c_void_p(self.base.ggml_init(InitParams((64 << 20) + 8 * held + 4 * pairs + 16 * params.get("N", 0) * params.get("O", 0),
                                                                 None, False)))
        result, view = make(params, inputs, weights)
        graph = C.c_void_p(self.base.ggml_new_graph(self.context))
        self.base.ggml_build_forward_expand(graph, result)

        def run():
            if self.base.ggml_backend_graph_compute(self.backend, graph):
                raise RuntimeError("ggml_backend_graph_compute failed")

        def close(context=self.context):
            self.base.ggml_free(context)

        run.close = close
        return run, lambda: view(self.base.ggml_get_data(result))

    def tensor(self, array):
        """A tensor of the graph that holds this; ggml names the innermost extent first."""
        shape = (C.c_int64 * array.ndim)(*reversed(array.shape))
        made = C.c_void_p(self.base.ggml_new_tensor(self.context, F16 if array.dtype == np.float16 else F32, array.ndim, shape))
        C.memmove(self.base.ggml_get_data(made), np.ascontiguousarray(array).ctypes.data, array.nbytes)
        return made

    def op(self, name, *arguments):
        return C.c_void_p(getattr(self.base, "ggml_" + name)(self.context, *arguments))

    @staticmethod
    def shaped(*shape):
        size = int(np.prod(shape))
        return lambda data: np.ctypeslib.as_array(C.cast(data, C.POINTER(C.c_float)), (size,)).reshape(shape).copy()

    # Each gives the graph's last tensor and how its data are read.

    def attention(self, p, inputs, weights):
        if "relative" in p or "cap" in p or p["N"] * p["M"] > LARGEST:
            raise NotImplementedError("no operator for it, or a mask beyond memory")
        q = inputs["q"].reshape(p["B"], p["H"], p["N"], p["E"])
        mask = cases.live(p) if p["N"] > 1 else None
        given = None if mask is None else self.tensor(np.where(mask, 0, -np.inf).astype(np.float16))
        y = self.op("flash_attn_ext", self.tensor(q), self.tensor(inputs["k"]), self.tensor(inputs["v"]), given,
                    C.c_float(p["E"]**-0.5), C.c_float(0), C.c_float(0))
        read = self.shaped(p["B"], p["N"], p["H"], p["E"])
        return y, lambda data: read(data).swapaxes(1, 2).reshape(inputs["q"].shape)

    def gemm(self, p, inputs, weights):
        x = self.tensor(inputs["x"])
        y = self.op("mul_mat", self.tensor(weights["weight"]), x)
        if p["epilogue"] == "swiglu":
            y = self.op("swiglu_split", self.op("mul_mat", self.tensor(weights["gate"]), x), y)
        elif p["epilogue"] != "product":
            y = self.op("add", y, self.tensor(weights["bias"]))
        if p["epilogue"].startswith("bias_gelu"):
            y = self.op("gelu" if p["epilogue"].endswith("tanh") else "gelu_erf", y)
        if p["epilogue"] == "bias_residual":
            y = self.op("add", y, self.tensor(inputs["r"]))
        return y, self.shaped(p["N"], p["O"])

    def layer_norm(self, p, inputs, weights):
        y = self.op("norm", self.tensor(inputs["x"]), C.c_float(p["eps"]))
        y = self.op("add", self.op("mul", y, self.tensor(weights["norm.weight"])), self.tensor(weights["norm.bias"]))
        return y, self.shaped(*inputs["x"].shape)

    def rms_norm(self, p, inputs, weights):
        y = self.op("rms_norm", self.tensor(inputs["x"]), C.c_float(p["eps"]))
        return self.op("mul", y, self.tensor(weights["norm.weight"])), self.shaped(*inputs["x"].shape)

    def softmax(self, p, inputs, weights):
        return self.op("soft_max", self.tensor(inputs["x"])), self.shaped(*inputs["x"].shape)
