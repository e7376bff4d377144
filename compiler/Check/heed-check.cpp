//===- heed-check.cpp - compares the fast backend with the reference
//--------===//
// Each model is compiled twice by the heedc beside this tool, as shared
// libraries; a compiler that crashes is one more thing to report.
#include "compiler/Check/Compare.h"
#include "compiler/Check/Grammar.h"
#include "compiler/Check/Inputs.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

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
                cl::desc("Check this many models drawn from the grammar"),
                cl::init(0), cl::cat(category));
cl::opt<uint64_t> seed("seed", cl::desc("What every draw follows from"),
                       cl::init(1), cl::cat(category));
cl::opt<unsigned> draws("draws", cl::desc("Inputs to draw per model"),
                        cl::init(24), cl::cat(category));
cl::list<std::string>
    weights("weights", cl::desc("Weights (drawn if the model has parameters)"),
            cl::value_desc("file"), cl::cat(category));
cl::list<std::string> settings("set", cl::desc("Passed to heedc"),
                               cl::value_desc("NAME=VALUE"), cl::cat(category));
cl::opt<bool> printModels("print-models",
                          cl::desc("Print the drawn models and stop"),
                          cl::cat(category));
cl::opt<bool> corrupt(
    "corrupt",
    cl::desc("Change one element of each fast result: the check must fail"),
    cl::cat(category));
cl::opt<std::string> after("after",
                           cl::desc("Compare the reference on the IR after "
                                    "this pass, not the fast backend"),
                           cl::value_desc("pass"), cl::cat(category));
cl::opt<bool>
    bisect("bisect",
           cl::desc("Name the first pass after which the reference differs"),
           cl::cat(category));
cl::opt<std::string>
    compilerFlag("heedc", cl::desc("The compiler (default: beside this tool)"),
                 cl::value_desc("file"), cl::cat(category));

std::string heedc, folder;

/// Runs a tool; what it says goes to \p text. Its exit code, negative after a
/// crash.
int execute(const std::vector<std::string> &list, std::string &text) {
  std::string log = folder + "/log.txt";
  std::vector<llvm::StringRef> args(list.begin(), list.end());
  std::optional<llvm::StringRef> redirects[] = {
      std::nullopt, llvm::StringRef(log), llvm::StringRef(log)};
  int code = llvm::sys::ExecuteAndWait(list[0], args, std::nullopt, redirects);
  text.clear();
  if (auto file = llvm::MemoryBuffer::getFile(log))
    text = (*file)->getBuffer().str();
  return code;
}

/// The lines of \p text that name an error; all of it if none does.
std::string errorsOf(const std::string &text) {
  std::string errors;
  for (llvm::StringRef line : llvm::split(llvm::StringRef(text), "\n"))
    if (line.contains("error: ") || line.contains("ERROR"))
      errors += "    " + line.str() + "\n";
  return errors.empty() ? text : errors;
}

/// Compiles \p source to a shared library.
int compile(const std::string &source, bool reference,
            const std::string &output, std::string &text) {
  std::vector<std::string> list{
      heedc, source, "--emit=shared", "--prefix=check", "-o", output};
  list.push_back(reference ? "--backend=reference" : "--explain");
  for (const std::string &setting : settings)
    list.push_back("--set=" + setting);
  return execute(list, text);
}

/// The passes on attn IR that --after and --bisect stop behind, in the order of
/// the driver's pipeline.
const char *const kPasses[] = {"attn-fuse-elementwise", "canonicalize", "cse",
                               "attn-raise-attention"};

/// Compiles with the reference what \p source has become after \p last.
int compileAfter(const std::string &source, llvm::StringRef last,
                 const std::string &output, std::string &text) {
  std::string before = folder + "/before.mlir",
              afterwards = folder + "/after.mlir";
  std::vector<std::string> list{heedc, source, "--emit=attn", "-o", before};
  for (const std::string &setting : settings)
    list.push_back("--set=" + setting);
  if (int code = execute(list, text))
    return code;
  list = {(llvm::sys::path::parent_path(heedc) + "/heed-opt").str(), before,
          "-o", afterwards};
  for (const char *pass : kPasses) {
    list.push_back(std::string("--") + pass);
    if (last == pass)
      break;
  }
  if (int code = execute(list, text))
    return code;
  return compile(afterwards, /*reference=*/true, output, text);
}

std::string position(int64_t at, const std::vector<int64_t> &shape) {
  std::string text;
  for (size_t axis = shape.size(); axis-- > 0;) {
    text = std::to_string(at % shape[axis]) + (text.empty() ? "" : ",") + text;
    at /= shape[axis];
  }
  return "[" + text + "]";
}

/// Compares the outcomes of one draw; prints what differs.
bool agree(const Outcome &fast, const Outcome &slow, const Draw &draw,
           std::vector<Difference> &worst) {
  if (fast.status != slow.status) {
    outs() << "  FAIL " << draw.text() << ": the fast backend says "
           << heed_status_name(fast.status) << " (" << fast.message
           << "), the reference " << heed_status_name(slow.status) << " ("
           << slow.message << ")\n";
    return false;
  }
  bool good = true;
  for (size_t k = 0; k < fast.outputs.size(); ++k) {
    const Array &x = fast.outputs[k], &r = slow.outputs[k];
    Difference d = compare(x, r, draw.tolerance);
    worst.resize(std::max(worst.size(), k + 1));
    worst[k].maxAbs = std::max(worst[k].maxAbs, d.maxAbs);
    worst[k].judged = std::max(worst[k].judged, d.judged);
    worst[k].relative = std::max(worst[k].relative, d.relative);
    worst[k].ulp = std::max(worst[k].ulp, d.ulp);
    if (d.ok())
      continue;
    good = false;
    outs() << "  FAIL " << draw.text() << ": ";
    if (d.shapeDiffers)
      outs() << "'" << r.name
             << "' has another shape or type than the reference\n";
    else
      outs() << x.name << position(d.firstBad, r.shape) << " = "
             << x.get(d.firstBad) << ", the reference has " << r.get(d.firstBad)
             << " (judged error " << llvm::format("%.2e", d.judged)
             << ", allowed " << llvm::format("%.2e", draw.tolerance) << ")\n";
  }
  return good;
}

/// Checks one source. Returns whether both backends agree; \p explained is what
/// the fast one said.
bool check(const std::string &source, const std::string &name,
           llvm::StringRef stage, std::string &explained) {
  outs() << name << "\n";
  outs().flush(); // a model may take a while, and be interrupted
  std::string fastLibrary = folder + "/fast.so",
              slowLibrary = folder + "/reference.so", text;
  int code = stage.empty()
                 ? compile(source, false, fastLibrary, explained)
                 : compileAfter(source, stage, fastLibrary, explained);
  if (code != 0) {
    outs() << "  FAIL heedc:\n" << errorsOf(explained);
    return false;
  }
  if (compile(against.empty() ? source : against.getValue(), true, slowLibrary,
              text) != 0) {
    outs() << "  FAIL heedc --backend=reference:\n" << errorsOf(text);
    return false;
  }
  std::string error;
  std::vector<std::string> used(weights.begin(), weights.end());
  Random random(seed);
  std::map<std::string, int64_t> fixed;
  {
    // The description is needed to draw weights before a model can be opened.
    std::string path = folder + "/drawn.safetensors";
    auto description = describe(fastLibrary, error);
    if (!description) {
      outs() << "  FAIL " << error << "\n";
      return false;
    }
    if (used.empty() && heed_num_params(description.get()) > 0) {
      if (!drawWeights(description.get(), path, random, fixed, error)) {
        outs() << "  FAIL " << error << "\n";
        return false;
      }
      used.push_back(path);
      // An extent that only the weights tell is the width of the model: the
      // last axis of its inputs.
      if (fixed.count("?"))
        for (int32_t k = 0;
             k < heed_entry_signature(description.get(), 0)->numInputs; ++k) {
          const heed_tensor_info &info =
              heed_entry_signature(description.get(), 0)->inputs[k];
          if (info.rank >= 2 && info.type == HEED_F32)
            fixed[info.extents[info.rank - 1]] = fixed["?"];
        }
    }
  }
  auto fast = Model::open(fastLibrary, used, error);
  auto slow = fast ? Model::open(slowLibrary, used, error) : nullptr;
  if (!slow) {
    outs() << "  FAIL " << error << "\n";
    return false;
  }

  std::vector<Difference> worst;
  unsigned ran = 0, refused = 0;
  for (unsigned k = 0; k < draws;
       ++k) { // from small to large: the first failure is the smallest
    unsigned level = k * 6 / draws;
    // Integers may be lengths (also too long) or indices (then too large is
    // refused, and drawn smaller).
    for (int64_t bound : {int64_t(1) << (level + 1), int64_t(1), int64_t(0)}) {
      auto draw = drawInputs(fast->signature(), random, level, Kind(k % 4),
                             fixed, bound);
      if (!draw)
        break;
      Outcome x = fast->run(draw->inputs), r = slow->run(draw->inputs);
      if (corrupt && !x.outputs.empty() && x.outputs[0].count())
        x.outputs[0].set(x.outputs[0].count() / 2,
                         x.outputs[0].get(x.outputs[0].count() / 2) + 1);
      if (!agree(x, r, *draw, worst))
        return false;
      ++(r.status == HEED_OK ? ran : refused);
      if (r.status != HEED_ERROR_RANGE)
        break;
    }
  }
  for (size_t k = 0; k < worst.size(); ++k)
    outs() << "  " << fast->signature().outputs[k].name
           << llvm::format(
                  ": max abs %.2e, judged %.2e, relative %.2e, %.0f ulp\n",
                  worst[k].maxAbs, worst[k].judged, worst[k].relative,
                  worst[k].ulp);
  outs() << "  " << ran << " inputs agree, " << refused << " refused by both\n";
  if (ran == 0)
    outs() << "  FAIL no drawn input was accepted\n";
  return ran > 0;
}

/// Checks after each pass and then the whole; names the first that differs.
bool bisectPasses(const std::string &source) {
  std::string explained;
  for (const char *pass : kPasses)
    if (!check(source, source + " after " + pass, pass, explained)) {
      outs() << source << ": the first pass that differs is " << pass << "\n";
      return false;
    }
  if (check(source, source, "", explained))
    return true;
  outs() << source
         << ": every pass on attn IR agrees; it differs in kernels, schedules "
            "or code generation\n";
  return false;
}

/// How many drawn models must be raised to one fused kernel, in percent.
constexpr unsigned kFusedPercent = 90;

bool checkRandom() {
  unsigned good = 0, fused = 0;
  for (unsigned k = 0; k < randomCount; ++k) {
    uint64_t own = seed * 1000003 + k;
    std::string source = folder + "/drawn.heed", model = drawModel(own),
                explained;
    if (printModels) {
      outs() << model << "\n";
      continue;
    }
    std::error_code code;
    llvm::raw_fd_ostream(source, code) << model;
    bool ok =
        check(source, "drawn model " + std::to_string(own), after, explained);
    good += ok;
    if (!ok)
      outs() << model;
    // What --explain says of attn-raise-attention.
    bool raised = false;
    std::string reason;
    for (llvm::StringRef line : llvm::split(llvm::StringRef(explained), "\n")) {
      if (line.contains("not raised"))
        reason = line.str();
      else if (line.contains("attn-raise-attention"))
        raised = true;
    }
    fused += raised;
    if (!raised)
      outs() << "  not fused: " << (reason.empty() ? "no reason given" : reason)
             << "\n";
  }
  if (printModels)
    return true;
  outs() << good << " of " << randomCount << " drawn models agree, " << fused
         << " are one fused kernel (seed " << seed << ")\n";
  return good == randomCount && fused * 100 >= kFusedPercent * randomCount;
}

} // namespace

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv, "heed-check: the fast backend against the reference\n");
  std::string self = llvm::sys::fs::getMainExecutable(
      argv[0], reinterpret_cast<void *>(&main));
  heedc = compilerFlag.empty()
              ? (llvm::sys::path::parent_path(self) + "/heedc").str()
              : compilerFlag.getValue();
  if (files.empty() && randomCount == 0) {
    llvm::errs() << "heed-check: error: expected a model, a folder of models "
                    "or --random=COUNT\n";
    return 1;
  }
  if (!after.empty() &&
      llvm::find(kPasses, after.getValue()) == std::end(kPasses)) {
    llvm::errs() << "heed-check: error: --after=" << after
                 << ": expected one of ";
    llvm::interleaveComma(kPasses, llvm::errs());
    llvm::errs() << "\n";
    return 1;
  }
  llvm::SmallString<128> directory;
  if (llvm::sys::fs::createUniqueDirectory("heed-check", directory)) {
    llvm::errs() << "heed-check: error: cannot make a temporary folder\n";
    return 1;
  }
  folder = directory.str().str();

  std::vector<std::string> sources;
  for (const std::string &file : files) {
    if (!llvm::sys::fs::exists(file)) {
      llvm::errs() << "heed-check: error: " << file
                   << ": no such file or folder\n";
      llvm::sys::fs::remove_directories(directory);
      return 1;
    }
    std::error_code code;
    if (!llvm::sys::fs::is_directory(file))
      sources.push_back(file);
    else
      for (llvm::sys::fs::recursive_directory_iterator at(file, code), end;
           at != end && !code; at.increment(code))
        if (llvm::sys::path::extension(at->path()) == ".heed")
          sources.push_back(at->path());
  }
  std::sort(sources.begin(), sources.end());
  unsigned bad = 0;
  std::string explained;
  for (const std::string &source : sources)
    bad += !(bisect ? bisectPasses(source)
                    : check(source, source, after, explained));
  if (sources.size() > 1)
    outs() << sources.size() - bad << " of " << sources.size()
           << " models agree\n";
  bool good = bad == 0 && (randomCount == 0 || checkRandom());
  llvm::sys::fs::remove_directories(directory);
  return good ? 0 : 1;
}
