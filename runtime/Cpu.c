/* Whether the processor can run what the compiler assumed. */
#include "runtime/Model.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
/* LLVM's names; the compiler's own test also asks whether the system saves the
 * registers. */
#define HEED_FEATURE(name)                                                     \
  if (length == strlen(name) && !memcmp(feature, name, length))                \
    return __builtin_cpu_supports(name) != 0;

static bool supports(const char *feature, size_t length) {
  __builtin_cpu_init();
  HEED_FEATURE("sse")
  HEED_FEATURE("sse2")
  HEED_FEATURE("sse3")
  HEED_FEATURE("ssse3")
  HEED_FEATURE("sse4.1")
  HEED_FEATURE("sse4.2")
  HEED_FEATURE("popcnt")
  HEED_FEATURE("avx")
  HEED_FEATURE("avx2")
  HEED_FEATURE("fma")
  HEED_FEATURE("f16c")
  HEED_FEATURE("bmi")
  HEED_FEATURE("bmi2")
  HEED_FEATURE("lzcnt")
  HEED_FEATURE("movbe")
  HEED_FEATURE("avx512f")
  HEED_FEATURE("avx512cd")
  HEED_FEATURE("avx512dq")
  HEED_FEATURE("avx512bw")
  HEED_FEATURE("avx512vl")
  HEED_FEATURE("avx512ifma")
  HEED_FEATURE("avx512vbmi")
  HEED_FEATURE("avx512vbmi2")
  HEED_FEATURE("avx512vnni")
  HEED_FEATURE("avx512bitalg")
  HEED_FEATURE("avx512vpopcntdq")
  HEED_FEATURE("avx512bf16")
  HEED_FEATURE("avx512fp16")
  HEED_FEATURE("avxvnni")
  return false;
}
#else
static bool supports(const char *feature, size_t length) {
  (void)feature;
  (void)length;
  return false;
}
#endif

bool heed_cpu_supports(const char *features, const char **missing,
                       size_t *length) {
  while (features && *features) {
    size_t size = strcspn(features, ",");
    const char *name = features;
    features += size + (features[size] == ',');
    if (size && *name == '+') /* LLVM's own spelling */
      ++name, --size;
    if (size && !supports(name, size)) {
      *missing = name;
      *length = size;
      return false;
    }
  }
  return true;
}

static bool isTarget(const heed_model_desc *desc, const char *name) {
  return desc->target && !strcmp(desc->target, name);
}

const char *heed_target_at(const heed_model_desc *desc, size_t target) {
  if (!desc)
    return NULL;
  for (const heed_model_desc *const *v = desc->variants; v && *v; ++v)
    if (target-- == 0)
      return (*v)->target;
  return target == 0 ? desc->target : NULL;
}

/* "x86-64-v4, x86-64-v3" */
static void listTargets(const heed_model_desc *desc, char *text, size_t size) {
  size_t length = 0;
  const char *name;
  snprintf(text, size, "no target with a name");
  for (size_t k = 0; length < size && (name = heed_target_at(desc, k)); ++k)
    length += (size_t)snprintf(text + length, size - length, "%s%s",
                               k ? ", " : "", name);
}

/* Whether there is what its kernels run on. */
static bool hasDevice(heed_model *model, const heed_model_desc *desc,
                      bool any) {
  model->gpu = desc->gpu ? desc->gpu : model->gpu;
  return !desc->gpu || desc->gpu->find(model, any, desc->deviceF64);
}

heed_status heed_choose_target(heed_model *model, const char *wanted) {
  const heed_model_desc *least = model->desc;
  const char *missing = "";
  size_t length = 0;
  bool anyOne = !wanted || !*wanted, known = anyOne;
  const heed_model_desc *const *next = least->variants;
  for (;;) {
    bool last = !next || !*next;
    const heed_model_desc *desc = last ? least : *next++;
    if (anyOne || isTarget(desc, wanted)) {
      known = true;
      if (heed_cpu_supports(desc->cpuFeatures, &missing, &length) &&
          hasDevice(model, desc, !anyOne)) {
        model->desc = desc;
        return HEED_OK;
      }
    }
    if (last)
      break;
  }
  char targets[256];
  listTargets(least, targets, sizeof targets);
  if (!known)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "model '%s' was compiled for %s, not for '%s'",
                     least->name, targets, wanted);
  if (!length) /* find() says why */
    return HEED_ERROR_DEVICE;
  return heed_fail(model, HEED_ERROR_CPU,
                   "model '%s' was compiled for a processor with '%.*s', which "
                   "this one lacks",
                   least->name, (int)length, missing);
}
