// States and generation through heed.hpp and generate.hpp: prints what they do,
// for cpp-generate.py to compare.
#include "generate.hpp"
#include "decoder.h"

#include <cstdio>
#include <cstdlib>

static void print(const char *what, const std::vector<std::int32_t> &ids) {
  std::printf("%s", what);
  for (std::int32_t id : ids)
    std::printf(" %d", id);
  std::printf("\n");
}

template <typename Call> static void fails(Call call) {
  try {
    call();
    std::printf("no error\n");
  } catch (const heed::Error &error) {
    std::printf("%s: %s\n", heed_status_name(error.status()), error.what());
  }
}

static void mistakes(heed::Model &model, heed::State &state,
                     const std::vector<heed::Buffer> &inputs) {
  fails([&] { heed::State(model, {{"B", 1}}); });
  fails([&] { state.trim("len", 99); });
  fails([&] { state.load("none"); });
  fails([&] { model.planMemory(inputs); });
  fails([&] {
    heed::Generation(model, state, inputs, heed::GenerationOptions(0));
  });
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  std::int64_t vocabulary = std::atoi(argv[2]);
  // Packed once, and opened from what was written.
  std::string packed = std::string(argv[3]) + ".packed";
  heed::Model model(decoder_model, heed::Options().weights(argv[1]).threads(1));
  model.savePacked(packed);
  model = heed::Model(decoder_model, heed::Options().packed(packed).threads(1));
  heed::State state(model, {{"B", 1}, {"C", 40}}),
      other(model, {{"B", 1}, {"C", 40}});
  std::vector<std::int32_t> prompt = {3, 14, 15, 9, 26}, count = {5};
  std::vector<float> logits(vocabulary);
  std::vector<heed::Buffer> inputs = {heed::array(prompt, {1, 5}),
                                      heed::array(count, {1})};
  std::vector<heed::Buffer> outputs = {heed::array(logits, {1, vocabulary})};

  // Planned with a state, of which nothing changes; then run.
  std::int64_t planned = model.planMemory(inputs, state, "forward");
  std::vector<std::int32_t> length(1, -1);
  state.get("len", heed::array(length, {1}));
  print("length", length);
  if (model.outputShapes(inputs, state, "forward")[0] != outputs[0].shape())
    return 1;
  model.run(inputs, outputs, state, "forward");
  heed_memory_use use = heed_memory_use();
  use.size = sizeof use;
  heed_memory(model.get(), &use);
  std::printf("memory %lld %lld\n", (long long)planned, (long long)use.buffers);
  for (float x : logits)
    std::printf("%.9g\n", x);

  // On from there, again after it is taken back, and from a file.
  state.get("len", heed::array(length, {1}));
  print("length", length);
  state.trim("len", 0);
  other.copyFrom(state);
  state.save(argv[3]);
  heed::Generation first(model, state, inputs, heed::GenerationOptions(12));
  first.run([](const std::vector<std::int32_t> &ids) {
    print("token", ids);
    return true;
  });
  print("all", first.tokens()[0]);
  state.trim("len", heed::array(count = {0}, {1}));
  count = {5};
  heed::Generation again(model, state, inputs, heed::GenerationOptions(12));
  again.run();
  print("all", again.tokens()[0]);
  other.load(argv[3]);
  heed::Generation ended(
      model, other, inputs,
      heed::GenerationOptions(12).stop({again.tokens()[0][2]}));
  ended.run();
  print("all", ended.tokens()[0]);

  // Rules, each of which says something here.
  std::vector<std::int32_t> all = again.tokens()[0];
  heed::State ruled(model, {{"B", 1}, {"C", 40}});
  heed::Generation rules(model, ruled, inputs,
                         heed::GenerationOptions(12)
                             .noRepeatNgram(2)
                             .badWords({{all[0], all[1]}, {all[3]}})
                             .stop({all[2]})
                             .minLength(8)
                             .forcedBos({1})
                             .forcedEos({50})
                             .suppress({all[4]})
                             .beginSuppress({all[5]}));
  rules.run();
  print("rules", rules.tokens()[0]);

  // Two beams of one prompt.
  heed::State beams(model, {{"B", 2}, {"C", 40}});
  std::vector<std::int32_t> twice = prompt, both = {5, 5};
  twice.insert(twice.end(), prompt.begin(), prompt.end());
  heed::Generation search(model, beams,
                          {heed::array(twice, {2, 5}), heed::array(both, {2})},
                          heed::GenerationOptions(6).beams(2));
  heed::Generation moved = std::move(search);
  moved.run();
  std::vector<double> scores;
  print("beams", moved.tokens(&scores)[0]);
  std::printf("score %.9g\n", scores[0]);
  mistakes(model, state, inputs);
}
