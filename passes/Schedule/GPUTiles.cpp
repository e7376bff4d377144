//===- GPUTiles.cpp - tiles of products on GPUs ---------------------------===//
//
// From the target description: registers, shared memory, multiprocessors.
#include "passes/Schedule/GPU.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace heed;

/// Registers of a thread beside its sums and its operands of a step: places,
/// bounds, what is on its way to shared memory.
static constexpr int64_t kOtherRegisters = 40;
/// What an extent that is not known is taken for.
static constexpr int64_t kUsualExtent = 1024;

double GPUTile::slots() const {
  // Operands come from shared memory as vectors of four. A step's part of what
  // is fetched is loaded so, too, and stored one by one.
  double products = ownRows * ownColumns;
  double loads = (ownRows + ownColumns) / 4.0;
  double fetched = 1.25 * (rows + columns) / threads();
  return products / (products + loads + fetched);
}

bool heed::isWidened(Value sum, Value out) {
  Block &body = out.getDefiningOp<halide::FuncOp>().getBody().front();
  return llvm::any_of(body.getOps<halide::ReadOp>(), [&](halide::ReadOp read) {
    return read.getFunc() == sum &&
           llvm::any_of(read->getUsers(), llvm::IsaPred<arith::ExtFOp>);
  });
}

GPUTile heed::chooseGPUTile(KnownExtent rows, KnownExtent columns,
                            int64_t count, int64_t sumRegisters,
                            const halide::Target &target) {
  // Each has as many threads, or half of them, that elements of a step are
  // fetched as vectors of four.
  static constexpr GPUTile tiles[] = {
      {128, 128, 8, 8}, {64, 128, 4, 8}, {128, 64, 8, 4}, {64, 64, 4, 4},
      {32, 64, 4, 4},   {32, 32, 4, 4},  {16, 64, 4, 4},
  };
  int64_t m = rows.value_or(kUsualExtent), n = columns.value_or(kUsualExtent);
  const GPUTile *best = nullptr;
  double most = -1;
  for (const GPUTile &tile : tiles) {
    int64_t registers = sumRegisters * tile.ownRows * tile.ownColumns +
                        tile.ownRows + tile.ownColumns + kOtherRegisters;
    int64_t bytes = (tile.rows + tile.columns + 8) * GPUTile::steps * 4;
    if (registers > target.threadRegisters || bytes > target.sharedBytes)
      continue;
    int64_t blocks = llvm::divideCeil(m, tile.rows) *
                     llvm::divideCeil(n, tile.columns) * count;
    double useful =
        double(m) * n * count / (double(blocks) * tile.rows * tile.columns);
    // A block waits at its barriers: two of them keep a multiprocessor busy.
    double busy =
        std::min(1.0, double(blocks) / (2.0 * target.multiprocessors));
    double gain = tile.slots() * useful * (0.1 + busy);
    if (gain > most) {
      most = gain;
      best = &tile;
    }
  }
  return best ? *best : tiles[std::size(tiles) - 2];
}
