//===- heed-check.cpp - does the fast backend compute what is meant? ------===//
//
// Compiles models twice, with the passes and Halide and with the reference, and
// compares them on drawn inputs. --random draws the models too.
//
//===----------------------------------------------------------------------===//

#include "compiler/Check/Check.h"
#include "compiler/Check/Fused.h"
#include "compiler/Check/Grammar.h"
#include "compiler/Check/Jobs.h"
#include "compiler/Link/Process.h"
#include "frontend/Common/Diagnostics.h"
#include "frontend/Common/Source.h"
#include "frontend/Heed/Syntax/Parser.h"
#include "support/Format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <thread>

using namespace heed::check;
namespace cl = llvm::cl;
using llvm::outs;

namespace {

cl::OptionCategory category("heed-check");
cl::list<std::string> files(cl::Positional,
                            cl::desc("[model.heed | folder]..."),
                            cl::cat(category));
cl::opt<std::string>
    against("against", cl::desc("Take the reference from this source instead"),
            cl::value_desc("file"), cl::cat(category));
cl::opt<unsigned>
    randomCount("random",
                cl::desc("Check this many models drawn from the grammar; 90 of "
                         "100 must become one fused kernel"),
                cl::value_desc("count"), cl::init(0), cl::cat(category));
cl::opt<uint64_t> seed("seed", cl::desc("What every draw follows from"),
                       cl::value_desc("number"), cl::init(1),
                       cl::cat(category));
cl::list<uint64_t> drawn("drawn",
                         cl::desc("Check the drawn model of this number"),
                         cl::value_desc("number"), cl::cat(category));
cl::opt<unsigned> draws("draws",
                        cl::desc("Random inputs per model, beside the edge "
                                 "cases (default: 12, of a drawn model 6; "
                                 "below 8 few sizes are tried)"),
                        cl::value_desc("count"), cl::cat(category));
cl::opt<unsigned> jobs("jobs",
                       cl::desc("Models checked at once (default: one per "
                                "core)"),
                       cl::value_desc("count"), cl::cat(category));
cl::list<std::string>
    weights("weights", cl::desc("Weights (drawn if the model has parameters)"),
            cl::value_desc("file"), cl::cat(category));
cl::opt<std::string> products("products", cl::desc("Passed to heedc"),
                              cl::value_desc("type"), cl::cat(category));
cl::opt<std::string> weightsType("weights-type", cl::desc("Passed to heedc"),
                                 cl::value_desc("type"), cl::cat(category));
cl::opt<std::string> target("target",
                            cl::desc("What the fast backend compiles for, as "
                                     "heedc has it (default: host)"),
                            cl::value_desc("name"), cl::cat(category));
cl::list<std::string> settings("set", cl::desc("Passed to heedc"),
                               cl::value_desc("NAME=VALUE"), cl::cat(category));
cl::opt<std::string> modelDir("model-dir",
                              cl::desc("Where config files are looked up "
                                       "(default: `check` beside the model)"),
                              cl::value_desc("folder"), cl::cat(category));
cl::opt<bool> printModels("print-models",
                          cl::desc("Print the drawn models and stop"),
                          cl::cat(category));
cl::opt<bool> printDraws("print-draws",
                         cl::desc("Print the sizes of every accepted draw"),
                         cl::cat(category));
cl::opt<bool> corrupt(
    "corrupt",
    cl::desc("Change one element of each fast result: the check must fail"),
    cl::cat(category));
cl::opt<std::string> after("after",
                           cl::desc("Compare the IR after this pass, not the "
                                    "whole: attn by the reference, halide by "
                                    "Halide"),
                           cl::value_desc("pass"), cl::cat(category));
cl::opt<bool> bisecting("bisect",
                        cl::desc("Name the first pass after which it differs"),
                        cl::cat(category));
cl::opt<std::string> insert("insert-pass",
                            cl::desc("Run one more pass, in the place "
                                     "AFTER=PASS"),
                            cl::Hidden, cl::cat(category));
cl::opt<std::string> plugin("load-pass-plugin",
                            cl::desc("Where the further pass is"), cl::Hidden,
                            cl::cat(category));
cl::opt<std::string>
    compilerFlag("heedc", cl::desc("The compiler (default: beside this tool)"),
                 cl::value_desc("file"), cl::cat(category));

/// How many drawn models must be raised to one fused kernel, in percent.
constexpr unsigned kFusedPercent = 90;

/// What a job says of its model, in bits.
enum : int { kFailed = 1, kNotFused = 2 };

int complain(const llvm::Twine &message) {
  llvm::errs() << "heed-check: error: " << message << "\n";
  return 1;
}

/// Whether the file is there for models that import it. One that cannot be read
/// or has errors is for heedc to say.
bool isLibrary(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return false;
  heed::Sources sources;
  heed::Diagnostics diags(sources);
  auto file =
      heed::parseFile(path, sources.add(path, (*buffer)->getBuffer()), diags);
  return !diags.hasErrors() && file->models.empty();
}

/// The sources that the command line names, in order; of a folder its models.
/// False if one is missing.
bool collect(std::vector<std::string> &sources) {
  for (const std::string &file : files) {
    if (!llvm::sys::fs::exists(file)) {
      complain(heed::format("{}: no such file or folder", file));
      return false;
    }
    std::error_code code;
    size_t before = sources.size();
    if (!llvm::sys::fs::is_directory(file))
      sources.push_back(file);
    else
      for (llvm::sys::fs::recursive_directory_iterator at(file, code), end;
           at != end && !code; at.increment(code))
        if (llvm::sys::path::extension(at->path()) == ".heed" &&
            !isLibrary(at->path()))
          sources.push_back(at->path());
    if (sources.size() == before) {
      complain(heed::format("{}: no model in this folder", file));
      return false;
    }
  }
  std::sort(sources.begin(), sources.end());
  return true;
}

/// Calls \p body with a folder of its own and removes it.
int inFolder(const CheckOptions &options,
             llvm::function_ref<int(const CheckOptions &)> body) {
  CheckOptions own = options;
  llvm::SmallString<128> directory;
  if (llvm::sys::fs::createUniqueDirectory("heed-check", directory)) {
    outs() << "  FAIL cannot make a temporary folder\n";
    return kFailed;
  }
  own.folder = directory.str().str();
  int code = body(own);
  (void)llvm::sys::fs::remove_directories(directory);
  return code;
}

bool checkSources(const CheckOptions &options, size_t stage, unsigned atOnce) {
  std::vector<std::string> sources;
  if (!collect(sources))
    return false;
  std::vector<int> codes = runJobs(sources.size(), atOnce, [&](size_t k) {
    return inFolder(options, [&](const CheckOptions &own) {
      std::string explained;
      bool good = bisecting
                      ? bisect(sources[k], own)
                      : check(sources[k], sources[k], stage, own, explained);
      return good ? 0 : kFailed;
    });
  });
  size_t good = llvm::count(codes, 0);
  if (sources.size() > 1)
    outs() << good << " of " << sources.size() << " models agree\n";
  return good == sources.size();
}

/// Writes a drawn model and what it means beside one another.
void writeDrawn(const DrawnModel &model, const std::string &source,
                const std::string &meaning) {
  std::error_code failed;
  llvm::raw_fd_ostream(source, failed) << model.source;
  llvm::raw_fd_ostream(meaning, failed) << model.meaning;
}

/// Checks one drawn model; says what it was if something was wrong.
int checkDrawn(uint64_t number, size_t stage, CheckOptions options) {
  std::string source = heed::format("{}/drawn.heed", options.folder), explained;
  DrawnModel model = drawModel(number);
  options.meaning = heed::format("{}/meaning.heed", options.folder);
  writeDrawn(model, source, options.meaning);
  bool good = check(source, heed::format("drawn model {}", number), stage,
                    options, explained);
  int code = good ? 0 : kFailed;
  if (stage == std::string::npos) {
    Fused fused = readExplanation(explained);
    if (!fused.oneKernel) {
      code |= kNotFused;
      outs() << "  not fused: " << fused.reason << "\n";
    }
  }
  if (code)
    outs() << model.source;
  return code;
}

bool bisectDrawn(uint64_t number, CheckOptions options) {
  std::string source = heed::format("{}/drawn.heed", options.folder);
  options.meaning = heed::format("{}/meaning.heed", options.folder);
  writeDrawn(drawModel(number), source, options.meaning);
  return bisect(source, options);
}

bool checkRandom(const CheckOptions &options, size_t stage, unsigned atOnce) {
  // A number of its own for each model: --drawn finds it again.
  std::vector<uint64_t> numbers(drawn.begin(), drawn.end());
  for (size_t k = 0; k < randomCount; ++k)
    numbers.push_back(seed * 1000003 + k);
  if (printModels) {
    for (uint64_t number : numbers)
      outs() << drawModel(number).source << "\n";
    return true;
  }
  std::vector<int> codes = runJobs(numbers.size(), atOnce, [&](size_t k) {
    return inFolder(options, [&](const CheckOptions &own) {
      return bisecting ? (bisectDrawn(numbers[k], own) ? 0 : kFailed)
                       : checkDrawn(numbers[k], stage, own);
    });
  });
  size_t bad = 0, fused = 0;
  for (int code : codes) {
    bad += code < 0 || (code & kFailed);
    fused += code >= 0 && !(code & kNotFused);
  }
  if (randomCount == 0)
    return bad == 0;
  outs() << "seed " << seed << ": " << numbers.size()
         << " drawn models checked, " << bad << " failed";
  bool enough = fused * 100 >= kFusedPercent * numbers.size();
  if (stage == std::string::npos) {
    outs() << "; one fused kernel: " << fused << " of " << numbers.size()
           << " (" << fused * 100 / numbers.size() << " %)";
    if (!enough)
      outs() << ", expected " << kFusedPercent << " %";
  }
  outs() << "\n";
  return bad == 0 && (enough || stage != std::string::npos);
}

/// The pass that --insert-pass=AFTER=PASS adds.
bool insertPass(Tools &tools) {
  if (insert.empty())
    return true;
  auto [place, pass] = llvm::StringRef(insert).split('=');
  auto at = tools.find(place.str());
  if (!at || pass.empty()) {
    complain(heed::format("--insert-pass={}: expected AFTER=PASS", insert));
    return false;
  }
  tools.passes.insert(tools.passes.begin() + *at + 1, pass.str());
  return true;
}

const char kOverview[] =
    "heed-check: the fast backend against the reference\n\n"
    "Each model is compiled twice and run on drawn inputs: random ones from\n"
    "small to large sizes, then sizes of 1, 0 and odd ones, scores of 1e4,\n"
    "NaN and -inf in live and in masked places, rows without a live key.\n"
    "Sizes are solved from what the model requires; every dim gets 0, 1, 2,\n"
    "the neighbours of vectors, tiles and blocks, more than two blocks, and\n"
    "more than L2 where it costs little. It prints the sizes that were\n"
    "accepted and the largest errors of each result; exit code 1 after a\n"
    "mismatch, with the smallest failing sizes and the first element that\n"
    "differs, or where a dim has larger sizes and none was accepted. The\n"
    "error |x - ref| / max|ref| of each row must stay below 1e-5, plus one\n"
    "rounding of a 16-bit type (the next number of that type where 1e-5 of\n"
    "itself decides which of the two it is), or be as small as in rows of\n"
    "that size when the equations are computed in f32 as they are written;\n"
    "with --products=bf16, where a factor may be rounded to the next bf16,\n"
    "2^-8.\n";

/// The number of the pass of --after; none asked for: the last of size_t.
bool findStage(Tools &tools, size_t &stage) {
  stage = std::string::npos;
  std::string error;
  if (after.empty() && !bisecting)
    return true;
  if (!tools.readPasses(error)) {
    complain(error);
    return false;
  }
  if (!insertPass(tools))
    return false;
  if (after.empty())
    return true;
  if (auto found = tools.find(after)) {
    stage = *found;
    return true;
  }
  std::vector<std::string> names;
  for (const std::string &pass : tools.passes)
    if (std::string name = passName(pass); !llvm::is_contained(names, name))
      names.push_back(name);
  complain(heed::format("--after={}: expected one of {}", after,
                        llvm::join(names, ", ")));
  return false;
}

} // namespace

int main(int argc, char **argv) {
  heed::prepareProcess();
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, kOverview);
  std::string self = llvm::sys::fs::getMainExecutable(
      argv[0], reinterpret_cast<void *>(&main));
  llvm::StringRef bin = llvm::sys::path::parent_path(self);
  if (files.empty() && randomCount == 0 && drawn.empty())
    return complain("expected a model, a folder of models or --random=COUNT");
  CheckOptions options;
  options.tools.heedc = compilerFlag.empty() ? heed::format("{}/heedc", bin)
                                             : compilerFlag.getValue();
  options.tools.heedOpt = heed::format(
      "{}/heed-opt", llvm::sys::path::parent_path(options.tools.heedc));
  options.tools.settings = settings;
  options.tools.modelDir = modelDir;
  options.tools.plugin = plugin;
  options.against = against;
  options.tools.weights = weights;
  options.tools.weightsType = weightsType;
  options.tools.target = target;
  options.tools.products = products;
  options.printDraws = printDraws;
  options.seed = seed;
  options.corrupt = corrupt;
  unsigned atOnce =
      jobs ? jobs : std::max(1u, std::thread::hardware_concurrency());

  size_t stage;
  if (!findStage(options.tools, stage))
    return 1;
  bool good = true;
  if (!files.empty()) {
    options.draws = draws ? draws : 12;
    good = checkSources(options, stage, atOnce);
  }
  if (randomCount > 0 || !drawn.empty()) {
    options.draws = draws ? draws : 6;
    options.tools.cache = false; // nobody compiles such a model twice
    good &= checkRandom(options, stage, atOnce);
  }
  return good ? 0 : 1;
}
