//===- MaskPicture.cpp - the masks of a model's attentions, drawn ---------===//
// Which sizes, which panels, and what is said of them. Tiles are the kernel's
// where the sizes hold eight of them; of smaller sizes, halves of those as
// often as it takes.
#include "compiler/Driver/MaskPicture.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace heed;

namespace {

/// Elements of a mask that is drawn, those of one whose elements are, batch
/// indices and turns of loops that are looked at, panels of an attention.
constexpr int64_t kMaxPairs = 1 << 22, kMaxElements = 256, kMaxIndices = 64;
constexpr size_t kMaxPanels = 6;
/// Of a dim that counts positions, at least; of any other.
constexpr int64_t kPositions = 64, kOther = 8;

class MaskArtist {
public:
  MaskArtist(ModuleOp module, StringRef model, std::string &error)
      : error(error) {
    picture.model = model.str();
    // The first entry that has an attention.
    for (auto entry : module.getOps<func::FuncOp>()) {
      bool draws =
          entry->hasAttr(attn::kModelAttr) &&
          entry.walk([](attn::AttentionOp) { return WalkResult::interrupt(); })
              .wasInterrupted();
      if (entry->hasAttr(attn::kModelAttr) && (!function || draws))
        function = entry;
      if (draws)
        break;
    }
  }

  FailureOr<MaskPicture> draw(ArrayRef<std::string> inputs);

private:
  LogicalResult fail(std::string text) {
    error = std::move(text);
    return failure();
  }
  LogicalResult takeInputs(ArrayRef<std::string> inputs);
  using Sizes = llvm::MapVector<StringRef, int64_t>;
  void chooseSizes();
  bool isBroken(attn::RequireOp require);
  void settle(attn::RequireOp require, const Sizes &sizes);
  LogicalResult checkSizes();
  /// A mask, where it is found first, and in how many other places.
  struct Distinct {
    MaskTiles tiles;
    std::string at;
    size_t more;
  };
  LogicalResult drawAttention(attn::AttentionOp op);
  void addPanel(attn::AttentionOp op, const AttentionMask &mask, Distinct &one,
                bool isOneOfSeveral);
  LogicalResult setSizes(attn::AttentionOp op, AttentionMask &mask,
                         MaskValues &values, MaskTiles &tiles);
  void say();

  func::FuncOp function;
  std::string &error;
  MaskPicture picture;
  MaskCall call;
  SmallVector<attn::AttentionOp> attentions, masked;
  std::vector<std::string> chosen, given; ///< `N = 64`
  std::set<std::string> unknown;
  size_t leftOut = 0;
};

/// The dim that \p size is, or empty.
StringRef dimName(Value size) {
  auto dim = size.getDefiningOp<tensor::DimOp>();
  return dim ? dimNameOf(dim.getSource(), dim.getConstantIndex()) : StringRef();
}

/// Every value that \p size is computed from.
void walkSize(Value size, bool isFactor,
              function_ref<void(StringRef, bool)> visit) {
  if (StringRef name = dimName(size); !name.empty())
    return visit(name, isFactor);
  Operation *op = size.getDefiningOp();
  if (!op || isa<tensor::DimOp>(op))
    return;
  bool multiplies =
      isa<arith::MulIOp>(op) &&
      llvm::none_of(op->getOperands(), [](Value operand) {
        return operand.getDefiningOp<arith::ConstantOp>() != nullptr;
      });
  for (Value operand : op->getOperands())
    walkSize(operand, isFactor || multiplies, visit);
}

LogicalResult MaskArtist::takeInputs(ArrayRef<std::string> inputs) {
  for (const std::string &setting : inputs) {
    auto [name, text] = StringRef(setting).split('=');
    SmallVector<StringRef> parts;
    text.split(parts, ',');
    std::vector<double> numbers;
    for (StringRef part : parts) {
      double number;
      if (part.trim().getAsDouble(number))
        return fail(format("expected --input name=number,number,.., found '{}'",
                           setting));
      numbers.push_back(number);
    }
    bool isThere = false;
    for (unsigned k = 0; k < function.getNumArguments(); ++k) {
      auto known = function.getArgAttrOfType<StringAttr>(k, "attn.name");
      isThere |= known && known.getValue() == name;
    }
    if (!isThere)
      return fail(format("--input {}: model '{}' has no input of that name",
                         name, picture.model));
    if (!call.inputs.try_emplace(name, std::move(numbers)).second)
      return fail(format("expected one --input {}, found two", name));
    given.push_back(format("{} = {}", name, text));
  }
  return success();
}

/// A dim that a number of queries or keys is, or is a sum or quotient of, has
/// room for four of the largest distance in a mask; factors of such a number
/// and all others are small.
void MaskArtist::chooseSizes() {
  int64_t positions = kPositions;
  for (attn::AttentionOp op : masked)
    while (positions < 4 * AttentionMask(op).largestConstant() &&
           positions < 1024)
      positions *= 2;
  Sizes sizes;
  for (attn::AttentionOp op : masked) {
    AttentionMask mask(op);
    for (Value size : llvm::concat<Value>(mask.queryDims(), mask.keyDims()))
      walkSize(size, mask.queryDims().size() > 1,
               [&](StringRef name, bool isFactor) {
                 int64_t &chosen = sizes[name];
                 chosen = std::max(chosen, isFactor ? kOther : positions);
               });
  }
  size_t ofMasks = sizes.size();
  function.walk([&](tensor::DimOp dim) {
    if (StringRef name = dimName(dim); !name.empty())
      sizes.insert({name, kOther});
  });
  for (auto &[name, size] : sizes)
    call.dims[name] = size;
  for (unsigned round = 0; round < 4; ++round)
    function.walk([&](attn::RequireOp require) { settle(require, sizes); });
  for (const auto &[name, size] : sizes.getArrayRef().take_front(ofMasks))
    chosen.push_back(format("{} = {}", name, call.dims[name]));
}

bool MaskArtist::isBroken(attn::RequireOp require) {
  return MaskValues(call).of(require.getCondition()).never();
}

/// Where sizes do not fulfil \p require, another size of one of its dims, with
/// which fewer requirements are left: of a dim that no mask asks for, if
/// possible.
void MaskArtist::settle(attn::RequireOp require, const Sizes &sizes) {
  if (!isBroken(require))
    return;
  auto broken = [&] {
    unsigned count = 0;
    function.walk([&](attn::RequireOp one) { count += isBroken(one); });
    return count;
  };
  llvm::SmallSetVector<StringRef, 4> names;
  walkSize(require.getCondition(), false,
           [&](StringRef name, bool) { names.insert(name); });
  unsigned fewest = broken();
  for (const auto &[name, size] : llvm::reverse(sizes)) {
    if (!names.contains(name))
      continue;
    SmallVector<int64_t> candidates{64, 32, 16, 4, 2, 1, 3, 56, 28, 112, 224};
    for (Value value : require.getValues())
      if (MaskValue other = MaskValues(call).of(value);
          other.isSingle() && other.low > 0)
        candidates.insert(candidates.begin(), other.low);
    int64_t best = call.dims[name];
    for (int64_t candidate : candidates) {
      call.dims[name] = candidate;
      if (unsigned count = broken(); count < fewest) {
        fewest = count;
        best = candidate;
      }
    }
    call.dims[name] = best;
    if (!isBroken(require))
      return;
  }
}

/// The sizes fulfil what the model requires of them, as far as that is known.
LogicalResult MaskArtist::checkSizes() {
  MaskValues values(call);
  LogicalResult fine = success();
  function.walk([&](attn::RequireOp require) {
    if (failed(fine) || !values.of(require.getCondition()).never())
      return;
    std::string text = require.getMessage().str();
    for (auto [k, value] : llvm::enumerate(require.getValues())) {
      std::string place = format("{{{}}}", k);
      MaskValue number = values.of(value);
      for (size_t at; (at = text.find(place)) != std::string::npos;)
        text.replace(at, place.size(), format("{}", number.low));
    }
    fine = fail(format("no sizes found to draw the mask for: {}; give them by "
                       "--set",
                       text));
  });
  return fine;
}

LogicalResult MaskArtist::setSizes(attn::AttentionOp op, AttentionMask &mask,
                                   MaskValues &values, MaskTiles &tiles) {
  auto product = [&](ArrayRef<Value> sizes) -> std::optional<int64_t> {
    int64_t total = 1;
    for (Value size : sizes) {
      MaskValue value = values.of(size);
      if (!value.isSingle() || value.low < 1 || value.low > kMaxPairs)
        return {};
      total *= value.low;
    }
    return total;
  };
  std::optional<int64_t> queries = product(mask.queryDims()),
                         keys = product(mask.keyDims());
  if (!queries || !keys)
    return fail("cannot choose sizes for the numbers of queries and keys: give "
                "them by --set");
  if (*queries > kMaxPairs / *keys)
    return fail(format("expected at most {} pairs of a query and a key in a "
                       "picture, found {} queries and {} keys; give smaller "
                       "sizes by --set",
                       kMaxPairs, *queries, *keys));
  tiles.queries = *queries;
  tiles.keys = *keys;
  tiles.tileQueries = tiles.tileKeys = 32;
  if (attn::PlanAttr plan = op.plan(); plan && !plan.getPipelines().empty()) {
    tiles.tileQueries = plan.getPipelines().back().getQueries();
    tiles.tileKeys = plan.getPipelines().back().getBlock();
  }
  auto halve = [](int64_t &tile, int64_t size) {
    while (tile > 1 && tile * 8 > size)
      tile = (tile + 1) / 2;
  };
  halve(tiles.tileQueries, tiles.queries);
  halve(tiles.tileKeys, tiles.keys);
  return success();
}

std::string placeOf(Location location) {
  std::string text;
  location->walk([&](Location one) {
    auto at = dyn_cast<FileLineColLoc>(one);
    if (!at)
      return WalkResult::advance();
    StringRef file = at.getFilename().getValue();
    text = format("{}:{}", file.substr(file.rfind('/') + 1), at.getLine());
    return WalkResult::interrupt();
  });
  return text;
}

/// What a mask may depend on beside places: turns of the loops around it, then
/// batch indices.
struct Circumstances {
  struct One {
    std::string name;
    int64_t first, count;
    Value loop;     ///< the loop's variable, or null
    unsigned batch; ///< the batch dim
  };
  Circumstances(attn::AttentionOp op, ArrayRef<unsigned> batchDims,
                MaskValues &values);
  int64_t combinations() const {
    int64_t product = 1;
    for (const One &one : all)
      product = std::min(product * one.count, kMaxIndices);
    return product;
  }
  /// Sets those of combination \p which and says so in words.
  std::string set(int64_t which, MaskValues &values,
                  MutableArrayRef<int64_t> batchAt) const;

  SmallVector<One> all;
};

Circumstances::Circumstances(attn::AttentionOp op, ArrayRef<unsigned> batchDims,
                             MaskValues &values) {
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>()) {
    MaskValue first = values.of(loop.getLowerBound()),
              end = values.of(loop.getUpperBound()),
              step = values.of(loop.getStep());
    bool known = first.isSingle() && end.isSingle() && end.low > first.low &&
                 step.isSingle() && step.low == 1;
    all.push_back({"turn", first.low, known ? end.low - first.low : 1,
                   loop.getInductionVar(), 0});
  }
  auto sizes = op.getSizes();
  for (unsigned dim : batchDims) {
    StringRef name = dimName(sizes[dim]);
    MaskValue size = values.of(sizes[dim]);
    all.push_back({name.size() == 1 && llvm::isAlpha(name[0])
                       ? name.lower()
                       : format("index {}", dim),
                   0, size.isSingle() ? std::max<int64_t>(size.low, 1) : 1,
                   Value(), dim});
  }
}

std::string Circumstances::set(int64_t which, MaskValues &values,
                               MutableArrayRef<int64_t> batchAt) const {
  std::vector<std::string> words;
  values.forgetScalars();
  for (const One &one : llvm::reverse(all)) {
    int64_t index = one.first + which % one.count;
    which /= one.count;
    if (one.loop)
      values.set(one.loop, index);
    else
      batchAt[one.batch] = index;
    if (one.count > 1)
      words.insert(words.begin(), format("{} = {}", one.name, index));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

LogicalResult MaskArtist::drawAttention(attn::AttentionOp op) {
  AttentionMask mask(op);
  MaskValues values(call);
  Circumstances circumstances(op, mask.batchDims(), values);
  std::vector<Distinct> distinct;
  for (int64_t which = 0; which < circumstances.combinations(); ++which) {
    SmallVector<int64_t> batchAt(op.numDims(attn::DimKind::Batch), 0);
    std::string at = circumstances.set(which, values, batchAt);
    MaskTiles tiles;
    if (failed(setSizes(op, mask, values, tiles)))
      return failure();
    mask.fill(tiles, values, batchAt,
              std::max(tiles.queries, tiles.keys) <= kMaxElements);
    auto same = llvm::find_if(
        distinct, [&](const Distinct &other) { return other.tiles == tiles; });
    if (same == distinct.end())
      distinct.push_back({std::move(tiles), std::move(at), 0});
    else
      ++same->more;
  }
  unknown.insert(values.unknown().begin(), values.unknown().end());
  if (distinct.size() > kMaxPanels) {
    leftOut += distinct.size() - kMaxPanels;
    distinct.resize(kMaxPanels);
  }
  for (Distinct &one : distinct)
    addPanel(op, mask, one, distinct.size() > 1);
  return success();
}

void MaskArtist::addPanel(attn::AttentionOp op, const AttentionMask &mask,
                          Distinct &one, bool isOneOfSeveral) {
  const MaskTiles &tiles = one.tiles;
  std::string place = placeOf(op.getLoc());
  size_t number = llvm::find(attentions, op) - attentions.begin();
  std::vector<std::string> title;
  title.push_back(
      format("attention{}{}",
             attentions.size() > 1
                 ? heed::format(" {} of {}", number + 1, attentions.size())
                 : "",
             place.empty() ? "" : heed::format(", {}", place)));
  if (isOneOfSeveral)
    title.push_back(
        format("{}{}", one.at,
               one.more ? heed::format(" and {} more", one.more) : ""));
  title.push_back(format("{} queries, {} keys; tiles of {} by {}",
                         tiles.queries, tiles.keys, tiles.tileQueries,
                         tiles.tileKeys));
  if (!mask.isSolved())
    title.push_back("several query or key dims: no tile is left out");
  picture.panels.push_back({std::move(title), std::move(one.tiles)});
}

void MaskArtist::say() {
  if (!chosen.empty())
    picture.notes.push_back(format("Sizes chosen for the picture: {}; --set "
                                   "gives others.",
                                   fmt::join(chosen, ", ")));
  if (!given.empty())
    picture.notes.push_back(format("Given: {}.", fmt::join(given, "; ")));
  if (!unknown.empty())
    picture.notes.push_back(format("The mask depends on data: {}{}.",
                                   fmt::join(unknown, ", "),
                                   "; --input gives it"));
  if (leftOut)
    picture.notes.push_back(
        format("{} more, for other batch indices, are not drawn.", leftOut));
}

FailureOr<MaskPicture> MaskArtist::draw(ArrayRef<std::string> inputs) {
  function.walk([&](attn::AttentionOp op) {
    attentions.push_back(op);
    if (!op.getWhere().empty())
      masked.push_back(op);
  });
  if (attentions.empty())
    return fail(format("model '{}' has no attention, so it has no mask",
                       picture.model));
  if (masked.empty())
    return fail(format("model '{}' has no mask: every query sees every key",
                       picture.model));
  if (failed(takeInputs(inputs)))
    return failure();
  chooseSizes();
  if (failed(checkSizes()))
    return failure();
  for (attn::AttentionOp op : masked)
    if (failed(drawAttention(op)))
      return failure();
  say();
  return std::move(picture);
}

} // namespace

FailureOr<MaskPicture> heed::drawMasks(ModuleOp module, StringRef model,
                                       ArrayRef<std::string> inputs,
                                       std::string &error) {
  return MaskArtist(module, model, error).draw(inputs);
}
