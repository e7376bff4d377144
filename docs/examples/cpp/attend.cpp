// Self-attention from C++ (heed.hpp): queries, keys and values lie in one array
// of [B, N, 3, H, E], as a projection writes it, and are given by strides; the
// result is written as [B, N, H, E].
//
// Prints the result, one number a line, then what three wrong calls say.
#include "heed.hpp"
#include "sdpa.h"
#include <cstdio>
#include <vector>

int main() {
  constexpr std::int64_t B = 2, N = 37, H = 4, E = 16;
  std::vector<float> qkv(B * N * 3 * H * E), result(B * N * H * E);
  for (std::size_t k = 0; k < qkv.size(); ++k)
    qkv[k] = float(k * 37 % 101) / 50 - 1;

  // The model wants [B, H, N, E]: the axes in its order, with our steps.
  auto part = [&](int which) {
    return heed::Buffer(&qkv[which * H * E], HEED_F32, {B, H, N, E},
                        {N * 3 * H * E, E, 3 * H * E, 1});
  };
  heed::Buffer output(result.data(), HEED_F32, {B, H, N, E},
                      {N * H * E, E, H * E, 1});
  try {
    heed::Model model(sdpa_model, heed::Options().threads(2));
    heed::Model other = model.share(1); // the same weights, other threads
    std::vector<heed::Buffer> inputs = {part(0), part(1), part(2)};
    if (model.outputShapes(inputs)[0] != output.shape())
      return 1;
    other.run(inputs, {output});
    for (float x : result)
      std::printf("%.9g\n", x);

    for (int wrong = 0; wrong < 3; ++wrong)
      try {
        if (wrong == 0)
          model.run({inputs[0], inputs[1]}, {output});
        else if (wrong == 1)
          model.run({part(0), part(1), heed::array(result, {B, N, H, E})},
                    {output});
        else
          heed::Model(sdpa_model, heed::Options().threads(-1));
      } catch (const heed::Error &error) {
        std::printf("%s: %s\n", heed_status_name(error.status()), error.what());
      }
  } catch (const heed::Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
