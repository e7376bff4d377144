"""OpenVINO on the CPU: whole encoders, LSTM and GRU, from ONNX in the standard's operators, in f32."""
import openvino as ov

from systems.onnx_models import CELLS, cell, encoder


class System:
    name = "openvino"

    def __init__(self, threads):
        self.core = ov.Core()
        # Its default would compute in bf16 where the processor can.
        self.settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                         "INFERENCE_PRECISION_HINT": "f32", "CPU_DENORMALS_OPTIMIZATION": True}

    def version(self):
        return ov.__version__

    def variants(self, case, inputs, weights):
        p = case["params"]
        if case["kind"] == "encoder":
            ids = {"ids": inputs["ids"]}
            return {"openvino": lambda: self.request(encoder(p, weights, inputs["ids"]), ids)}
        if case["kind"] == "zoo" and p["key"] in CELLS:
            return {"openvino": lambda: self.request(*cell(p["key"], inputs, weights))}
        return {}

    def request(self, model, arrays, result=lambda y: y):
        request = self.core.compile_model(self.core.read_model(model), "CPU", self.settings).create_infer_request()
        for name, array in arrays.items():
            request.set_tensor(name, ov.Tensor(array))
        return request.infer, lambda: result(*(output.data.copy() for output in request.output_tensors))
