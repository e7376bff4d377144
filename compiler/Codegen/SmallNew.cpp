// operator new for a compiler: libHalide and LLVM make and drop millions of
// small nodes, and a tenth of a kernel's compile time went into malloc.
//
// A block of up to a kilobyte comes from a list of its size, of the thread that
// asks, and goes back to one. Nothing is given back to the system: a compiler
// ends soon. Whatever is larger is malloc's.

#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizers bring theirs.
#else

namespace {

/// Before each block: how many units it has, itself included; 0: it is
/// malloc's.
using Header = uint64_t;

constexpr size_t unit = 16, largest = 1024 / unit, chunk = size_t(1) << 20;

struct Free {
  Free *next;
};

struct Pool {
  Free *free[largest + 1];
  char *at, *end;
};

// Without a constructor, so that it serves before and after all others.
thread_local Pool pool;

/// Blocks lie 8 bytes behind a multiple of 16, so that what follows the header
/// lies on one.
void *fromMalloc(size_t size) {
  char *block = static_cast<char *>(std::malloc(size + unit));
  if (!block)
    throw std::bad_alloc();
  reinterpret_cast<Header *>(block)[1] = 0;
  return block + unit;
}

void *fromChunk(size_t units) {
  if (size_t(pool.end - pool.at) < units * unit) {
    char *fresh = static_cast<char *>(std::malloc(chunk));
    if (!fresh)
      throw std::bad_alloc();
    pool.at = fresh + sizeof(Header);
    pool.end = fresh + chunk;
  }
  Header *block = reinterpret_cast<Header *>(pool.at);
  pool.at += units * unit;
  *block = units;
  return block + 1;
}

} // namespace

void *operator new(size_t size) {
  size_t units = (size + sizeof(Header) + unit - 1) / unit;
  if (size > largest * unit - sizeof(Header))
    return fromMalloc(size);
  if (Free *block = pool.free[units]) {
    pool.free[units] = block->next;
    return block;
  }
  return fromChunk(units);
}

void operator delete(void *memory) noexcept {
  if (!memory)
    return;
  Header units = static_cast<Header *>(memory)[-1];
  if (units == 0)
    return std::free(static_cast<char *>(memory) - unit);
  Free *block = static_cast<Free *>(memory);
  block->next = pool.free[units];
  pool.free[units] = block;
}

void operator delete(void *memory, size_t) noexcept { operator delete(memory); }

#endif
