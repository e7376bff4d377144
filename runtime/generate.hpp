// generate.h for C++17, beside heed.hpp: tokens chosen by a model's logits.
//
//   heed::Generation generation(model, state, {heed::array(ids, {1, 9})},
//                               heed::GenerationOptions(64).stop({2}));
//   generation.run([](const std::vector<std::int32_t> &ids) {
//     return std::printf("%d ", ids[0]) > 0; // false ends it
//   });
//
// One thread at a time uses it, the model's; model and state live longer.
#ifndef HEED_GENERATE_HPP
#define HEED_GENERATE_HPP

#include "generate.h"
#include "heed.hpp"

namespace heed {

/// heed_generation_options and heed_sampling; the lists are kept.
class GenerationOptions {
public:
  explicit GenerationOptions(std::int64_t maxNew) {
    raw = heed_generation_options();
    raw.size = sizeof raw;
    raw.maxNew = maxNew;
    sampling = heed_sampling();
    sampling.size = sizeof sampling;
  }
  GenerationOptions &entry(std::string name) {
    wanted = std::move(name);
    return *this;
  }
  GenerationOptions &temperature(double value) {
    sampling.temperature = value;
    return *this;
  }
  GenerationOptions &seed(std::uint64_t value) {
    sampling.seed = value;
    return *this;
  }
  GenerationOptions &stop(std::vector<std::int32_t> ids) {
    stops = std::move(ids);
    return *this;
  }
  GenerationOptions &beams(std::int64_t count, double lengthPenalty = 1,
                           std::int32_t earlyStopping = HEED_EARLY_FALSE) {
    raw.beams = count;
    raw.lengthPenalty = lengthPenalty;
    raw.earlyStopping = earlyStopping;
    return *this;
  }
  GenerationOptions &noRepeatNgram(std::int64_t length) {
    sampling.noRepeatNgram = length;
    return *this;
  }
  GenerationOptions &
  badWords(const std::vector<std::vector<std::int32_t>> &words) {
    bad.clear();
    for (const std::vector<std::int32_t> &word : words) {
      bad.insert(bad.end(), word.begin(), word.end());
      bad.push_back(-1);
    }
    return *this;
  }
  GenerationOptions &minLength(std::int64_t length) {
    sampling.minLength = length;
    return *this;
  }
  GenerationOptions &minNew(std::int64_t count) {
    sampling.minNew = count;
    return *this;
  }
  GenerationOptions &forcedBos(std::vector<std::int32_t> ids) {
    bos = std::move(ids);
    return *this;
  }
  GenerationOptions &forcedEos(std::vector<std::int32_t> ids) {
    eos = std::move(ids);
    return *this;
  }
  GenerationOptions &suppress(std::vector<std::int32_t> ids) {
    never = std::move(ids);
    return *this;
  }
  GenerationOptions &beginSuppress(std::vector<std::int32_t> ids) {
    notFirst = std::move(ids);
    return *this;
  }
  /// The rest by generate.h's names.
  heed_generation_options raw;
  heed_sampling sampling;

private:
  friend class Generation;
  std::string wanted;
  std::vector<std::int32_t> stops, bad, bos, eos, never, notFirst;

  static void put(const std::vector<std::int32_t> &from,
                  const std::int32_t *&ids, std::size_t &count) {
    if (from.empty())
      return;
    ids = from.data();
    count = from.size();
  }
  /// With pointers into the lists.
  heed_sampling withLists() const {
    heed_sampling s = sampling;
    put(stops, s.stop, s.numStop);
    put(bad, s.badWords, s.numBadWords);
    put(bos, s.forcedBos, s.numForcedBos);
    put(eos, s.forcedEos, s.numForcedEos);
    put(never, s.suppress, s.numSuppress);
    put(notFirst, s.beginSuppress, s.numBeginSuppress);
    return s;
  }
};

/// Tokens, one after another. What the inputs but `ids` and `count` borrow
/// lives as long as it does.
class Generation {
public:
  Generation(Model &model, const std::vector<Buffer> &inputs,
             const GenerationOptions &options)
      : Generation(model, inputs, options, nullptr) {}
  Generation(Model &model, State &state, const std::vector<Buffer> &inputs,
             const GenerationOptions &options)
      : Generation(model, inputs, options, state.get()) {}
  Generation(Generation &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)), rows(other.rows),
        prompts(other.prompts), longest(other.longest),
        hasBeams(other.hasBeams) {}
  Generation &operator=(Generation &&) = delete;
  Generation(const Generation &) = delete;
  ~Generation() { heed_generation_close(handle); }

  /// The next token of each row, -1 where it has stopped; empty with beams.
  /// *running says how many rows go on.
  std::vector<std::int32_t> step(std::int64_t *running = nullptr) {
    std::vector<std::int32_t> ids(hasBeams ? 0 : std::size_t(rows));
    std::int64_t left = 0;
    check(heed_generation_step(handle, hasBeams ? nullptr : ids.data(), &left));
    if (running)
      *running = left;
    return ids;
  }
  /// All steps; onTokens(ids) after each, of which `false` ends generation.
  template <typename OnTokens> void run(OnTokens onTokens) {
    std::int64_t running = 1;
    while (running > 0)
      if (std::vector<std::int32_t> ids = step(&running); !onTokens(ids))
        return;
  }
  void run() { check(heed_generate(handle, nullptr, nullptr)); }

  /// What was made: a list for each prompt, without -1; with beams, what the
  /// best hypothesis scores.
  std::vector<std::vector<std::int32_t>>
  tokens(std::vector<double> *scores = nullptr) const {
    std::size_t width = std::size_t(longest);
    std::vector<std::int32_t> all(std::size_t(prompts) * width, -1);
    std::vector<double> values(std::size_t(prompts), 0);
    check(heed_generation_tokens(handle, longest, all.data(), values.data()));
    std::vector<std::vector<std::int32_t>> lists;
    for (std::size_t p = 0; p < std::size_t(prompts); ++p) {
      std::size_t count = 0;
      while (count < width && all[p * width + count] >= 0)
        ++count;
      lists.emplace_back(all.data() + p * width,
                         all.data() + p * width + count);
    }
    if (scores)
      *scores = values;
    return lists;
  }

  /// For the rest of generate.h.
  heed_generation *get() const { return handle; }

private:
  Generation(Model &model, const std::vector<Buffer> &inputs,
             const GenerationOptions &options, heed_state *state) {
    heed_sampling sampling = options.withLists();
    heed_generation_options raw = options.raw;
    if (!options.wanted.empty())
      raw.entry = options.wanted.c_str();
    if (state)
      raw.state = state;
    raw.sampling = &sampling;
    std::vector<heed_buffer> in = Model::rawOf(inputs);
    heed_status status =
        heed_generation_open(model.get(), &raw, in.data(), in.size(), &handle);
    if (status != HEED_OK) {
      Error error(status, heed_generation_last_error(handle));
      heed_generation_close(std::exchange(handle, nullptr));
      throw error;
    }
    longest = raw.maxNew;
    hasBeams = raw.beams > 1;
    std::int32_t ids = -1;
    for (std::size_t e = 0; ids < 0 && e < heed_num_entries(model.desc); ++e) {
      const heed_signature *entry = heed_entry_signature(model.desc, e);
      if (heed_can_generate(entry) &&
          (options.wanted.empty() || options.wanted == entry->entry))
        ids = heed_find_input(entry, "ids");
    }
    rows = in[std::size_t(ids)].shape[0];
    prompts = hasBeams ? rows / raw.beams : rows;
  }
  void check(heed_status status) const {
    if (status != HEED_OK)
      throw Error(status, heed_generation_last_error(handle));
  }

  heed_generation *handle = nullptr;
  std::int64_t rows = 0, prompts = 0, longest = 0;
  bool hasBeams = false;
};

} // namespace heed

#endif
