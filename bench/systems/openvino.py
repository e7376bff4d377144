"""OpenVINO on the CPU: whole encoders, from ONNX in the standard's operators, in f32."""
import openvino as ov

from systems.onnx_models import encoder


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
        return {"openvino": lambda: self.encoder(case["params"], inputs, weights)} if case["kind"] == "encoder" else {}

    def encoder(self, p, inputs, weights):
        model = self.core.read_model(encoder(p, weights, inputs["ids"]))
        request = self.core.compile_model(model, "CPU", self.settings).create_infer_request()
        request.set_input_tensor(0, ov.Tensor(inputs["ids"]))
        return request.infer, lambda: request.get_output_tensor(0).data.copy()
