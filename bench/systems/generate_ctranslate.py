"""CTranslate2: its own converter's model of the checkpoint. It computes f32 on a CPU, and gives its tokens through a callback."""
import os
import shutil
import time

import ctranslate2
import numpy as np

MOST = 17  # tokens of a run that times steps: each run begins with the prompt


class Vocabulary:
    """Stands for a tokenizer: ids as words."""
    bos_token = eos_token = unk_token = "0"

    def __init__(self, size):
        self.words = {str(k): k for k in range(size)}

    def get_vocab(self):
        return self.words


def folder_of(folder):
    """The converted model, beside the checkpoint."""
    made, source = os.path.join(folder, "ctranslate2"), os.path.join(folder, "model.safetensors")
    if os.path.exists(made) and os.path.getmtime(made) >= os.path.getmtime(source):
        return made
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):

        def load_tokenizer(self, *_, **__):
            import json
            with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
                return Vocabulary(json.load(file)["vocab_size"])

    part = made + ".part"
    shutil.rmtree(part, ignore_errors=True)
    Converter(folder).convert(part)
    shutil.rmtree(made, ignore_errors=True)
    os.replace(part, made)
    return made


class Generation:

    def __init__(self, model, case, ids):
        self.model, self.words, self.new = model, [[str(x) for x in row] for row in ids.tolist()], case["new"]

    def run(self, count):
        """Tokens, [rows, count], and when each step had chosen its last one."""
        times = np.zeros(count)

        def chosen(result):
            times[result.step] = time.perf_counter()
            return False

        # Its end token is one that cannot be left away; a longer least length forbids it.
        made = self.model.generate_batch(self.words, max_length=count, min_length=count, sampling_topk=1, include_prompt_in_result=False,
                                         end_token="1", callback=chosen)
        return np.array([x.sequences_ids[0] for x in made], np.int32), times

    def prefill(self):
        self.run(1)

    def greedy(self, count):
        return self.run(count)[0]

    def steps(self):
        """Seconds of each step."""
        return np.diff(self.run(MOST)[1]).tolist()

    def close(self):
        pass


class System:
    name = "ctranslate2"

    def __init__(self, threads):
        self.threads = threads

    def version(self):
        return ctranslate2.__version__

    def ways(self, case):
        if case["type"] != "f32":
            raise NotImplementedError("on a CPU it has f32 and int8 only")
        return ["ctranslate2"]

    def load(self, case, way):
        return ctranslate2.Generator(folder_of(case["folder"]), device="cpu", compute_type="float32", intra_threads=self.threads, inter_threads=1)

    def unload(self, model):
        pass

    def open(self, model, case, way, ids):
        return Generation(model, case, ids)
