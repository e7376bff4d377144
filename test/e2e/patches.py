# RUN: %python %s %heed_bin %t
"""Patches of an image by a weight of four axes, which is packed when the model is opened, against float64 NumPy."""
import pathlib
import sys

import numpy as np

from runs import expect, finish, run
from safetensors_file import write

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(23)
(folder / "patches.heed").write_text("""model patches(image: f32[B, 3, 32, 48]; D = 52) {
  param w: f32[D, 3, 8, 8] @ "w"
  param b: f32[D] @ "b"
  return y[n,i:24,d] = sum(c, y:8, x:8) image[n,c,i/6*8 + y,i%6*8 + x] * w[d,c,y,x] + b[d]
}
""")
w, b = rng.standard_normal((52, 3, 8, 8), np.float32), rng.standard_normal(52, np.float32)
write(folder / "w.safetensors", {"w": w, "b": b})
done = run(heedc, folder / "patches.heed", "--explain=all", "-o", folder / "patches")
expect(done.returncode == 0 and "computed once, when the model is opened" in done.stdout + done.stderr, done.stderr)
for count in 3, 1, 0:
    image = rng.standard_normal((count, 3, 32, 48), np.float32)
    np.save(folder / "image.npy", image)
    done = run(folder / "patches", "--image", folder / "image.npy", "--weights", folder / "w.safetensors", "--output", folder / "y.npy")
    expect(done.returncode == 0, done.stderr)
    parts = image.astype(float).reshape(count, 3, 4, 8, 6, 8)
    want = np.einsum("ncpyqx,dcyx->npqd", parts, w.astype(float)).reshape(count, 24, 52) + b
    got = np.load(folder / "y.npy")
    expect(got.shape == want.shape and np.abs(got - want).max(initial=0) < 1e-5 * max(np.abs(want).max(initial=0), 1), f"{count} images differ")
finish()
