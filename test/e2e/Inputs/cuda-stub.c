/* CUDA's driver on a processor, for tests where no GPU is: every function that
 * the runtime asks for, kernels run from their PTX (ptx.h), memory of the
 * device that is the host's, of which no other part may be touched. A function
 * fails that has no context, gets what the driver would refuse, or is named by
 * FAIL: its calls number AT to UNTIL (AT alone, if there is none) give STATUS,
 * and with LOST every later one does, too. Calls are counted in calls_FUNCTION.
 * When the process ends it says what was made and not given back. */
#include "cuda-stub.h"
#include "ptx.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int numberOf(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text && *text ? atoi(text) : otherwise;
}

/* ---- what is made, and what fails ---- */

int made;
static int lost;

__attribute__((destructor)) static void end(void) {
  if (made)
    fprintf(stderr, "cuda-stub: %d things are not given back\n", made);
}

int failure(const char *name, int call) {
  const char *wanted = getenv("FAIL");
  int first = numberOf("AT", 0);
  if (lost)
    return lost;
  if (!wanted || strcmp(wanted, name) || call < first ||
      call > numberOf("UNTIL", first))
    return 0;
  int status = numberOf("STATUS", 999);
  if (getenv("LOST") && *getenv("LOST"))
    lost = status;
  return status;
}

/* One call at a time. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int lock(void) { return pthread_mutex_lock(&mutex); }
void unlock(int *locked) {
  if (!*locked)
    pthread_mutex_unlock(&mutex);
}

/* ---- devices and contexts ---- */

static int primary; /* how often it is retained */
static char context, another;
static _Thread_local void *contexts[16];
static _Thread_local int depth;

int cuda_stub_depth(void) { return depth; }

/* A context as somebody else would make one, of device 0. */
void *cuda_stub_context(void) { return &another; }

void *current(void) { return depth ? contexts[depth - 1] : NULL; }

int isEntered(void) {
  return (current() == &context && primary > 0) || current() == &another;
}

int calls_cuInit, calls_cuDeviceGetCount, calls_cuDeviceGet,
    calls_cuDeviceGetName, calls_cuDeviceGetAttribute,
    calls_cuDevicePrimaryCtxRetain, calls_cuDevicePrimaryCtxRelease,
    calls_cuCtxPushCurrent, calls_cuCtxGetDevice;

int cuInit(unsigned flags) {
  COUNTED(cuInit);
  return flags ? INVALID_VALUE : numberOf("DEVICES", 1) ? 0 : NO_DEVICE;
}

int cuGetErrorName(int status, const char **name) {
  static const struct {
    int status;
    const char *name;
  } names[] = {{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
               {NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
               {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
               {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
               {INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
               {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
               {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
               {999, "CUDA_ERROR_UNKNOWN"}};
  for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
    if (names[k].status == status) {
      *name = names[k].name;
      return 0;
    }
  return INVALID_VALUE;
}

int cuDeviceGetCount(int *count) {
  COUNTED(cuDeviceGetCount);
  *count = numberOf("DEVICES", 1);
  return 0;
}

int cuDeviceGet(int *device, int number) {
  COUNTED(cuDeviceGet);
  *device = number;
  return 0;
}

int cuDeviceGetName(char *name, int size, int device) {
  COUNTED(cuDeviceGetName);
  snprintf(name, (size_t)size, "stub %d", device);
  return 0;
}

/* The first of several devices is an old one, where nothing says that all are.
 */
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  COUNTED(cuDeviceGetAttribute);
  bool isOld = (device == 0 && numberOf("DEVICES", 1) > 1) || getenv("OLD");
  *value = attribute == 75   ? (isOld ? 7 : 9)
           : attribute == 76 ? (isOld ? 5 : 0)
           : attribute == 97 ? numberOf("SHARED", MOST_SHARED)
                             : 0;
  return 0;
}

int cuDevicePrimaryCtxRetain(void **made_, int device) {
  COUNTED(cuDevicePrimaryCtxRetain);
  (void)device;
  ++made;
  ++primary;
  *made_ = &context;
  return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  LOCKED;
  ++calls_cuDevicePrimaryCtxRelease;
  --made;
  --primary;
  return 0;
}

/* Of a device that is lost, too. */
int cuCtxPushCurrent_v2(void *pushed) {
  LOCKED;
  int status = failure("cuCtxPushCurrent", ++calls_cuCtxPushCurrent);
  if (status && !lost)
    return status;
  if (depth == 16)
    return INVALID_VALUE;
  contexts[depth++] = pushed;
  return 0;
}

int cuCtxPopCurrent_v2(void **popped) {
  if (!depth)
    return INVALID_CONTEXT;
  *popped = contexts[--depth];
  return 0;
}

int cuCtxGetDevice(int *device) {
  COUNTED(cuCtxGetDevice);
  *device = 0;
  return current() == &another ? 0 : INVALID_CONTEXT;
}

/* ---- events ---- */

int calls_cuEventCreate, calls_cuEventRecord, calls_cuEventElapsedTime,
    calls_cuEventDestroy;

/* An event holds when it was recorded last. */
static int moment;

int cuEventCreate(int **event, unsigned flags) {
  ENTERED(cuEventCreate);
  (void)flags;
  ++made;
  *event = calloc(1, sizeof **event);
  return 0;
}

int cuEventRecord(int *event, void *on) {
  ENTERED(cuEventRecord);
  *event = ++moment;
  return streamOf(on) ? 0 : INVALID_HANDLE;
}

/* An hour, which no test lasts. */
int cuEventElapsedTime(float *milliseconds, int *from, int *to) {
  ENTERED(cuEventElapsedTime);
  *milliseconds = 3.6e6f;
  return *from && *from < *to ? 0 : INVALID_HANDLE;
}

int cuEventDestroy_v2(int *event) {
  LOCKED;
  ++calls_cuEventDestroy;
  --made;
  free(event);
  return 0;
}

/* ---- modules and launches ---- */

int calls_cuModuleLoadDataEx, calls_cuModuleUnload, calls_cuModuleGetFunction,
    calls_cuFuncSetAttribute, calls_cuLaunchKernel;

/* Modules of machine code. */
int cuda_stub_binaries;

int cuModuleLoadDataEx(ptx_module **module, const char *code, unsigned count,
                       const int *options, void **values) {
  char unread[256], *log = unread, message[256] = "";
  size_t size = sizeof unread;
  for (unsigned k = 0; k < count; ++k) {
    log = options[k] == 5 ? values[k] : log;
    size = options[k] == 6 ? (size_t)(uintptr_t)values[k] : size;
  }
  snprintf(log, size, "ptxas as the stub plays it: asked to fail\nand more\n");
  ENTERED(cuModuleLoadDataEx);
  /* What stands for machine code: ELF's mark, an architecture, and the PTX that
   * it is of. */
  if (!strncmp(code, "\177ELF", 4)) {
    if (strncmp(code + 4, "sm_90\n", 6))
      return NO_BINARY_FOR_GPU;
    code += 10;
    ++cuda_stub_binaries;
  }
  *module = ptx_load(code, message, sizeof message);
  snprintf(log, size, "%s\n", message);
  made += *module != NULL;
  return *module ? 0 : INVALID_PTX;
}

int cuModuleUnload(ptx_module *module) {
  LOCKED;
  ++calls_cuModuleUnload;
  --made;
  ptx_unload(module);
  return 0;
}

int cuModuleGetFunction(const ptx_kernel **function, const ptx_module *module,
                        const char *name) {
  ENTERED(cuModuleGetFunction);
  *function = ptx_find(module, name);
  return *function ? 0 : NOT_FOUND;
}

/* Of one kernel: tests have one that needs it. */
static const ptx_kernel *raised;
static int raisedTo = 48 << 10;

int cuFuncSetAttribute(const ptx_kernel *function, int attribute, int value) {
  ENTERED(cuFuncSetAttribute);
  if (attribute != 8 || value > MOST_SHARED)
    return INVALID_VALUE;
  raised = function;
  raisedTo = value;
  return 0;
}

/* What a launch of that number sets, as another thread might meanwhile. */
int *cuda_stub_flag, cuda_stub_flag_at;

int cuLaunchKernel(const ptx_kernel *function, unsigned blocksX,
                   unsigned blocksY, unsigned blocksZ, unsigned threadsX,
                   unsigned threadsY, unsigned threadsZ, unsigned sharedBytes,
                   void *on, void **parameters, void **extra) {
  ENTERED(cuLaunchKernel);
  if (cuda_stub_flag && calls_cuLaunchKernel == cuda_stub_flag_at)
    *cuda_stub_flag = 1;
  ptx_launch launch = {.blocks = {blocksX, blocksY, blocksZ},
                       .threads = {threadsX, threadsY, threadsZ},
                       .sharedBytes = sharedBytes,
                       .parameters = parameters,
                       .isMemory = isMemory};
  unsigned long threads = (unsigned long)threadsX * threadsY * threadsZ;
  stub_stream *stream = streamOf(on);
  if (!stream || extra || !blocksX || !blocksY || !blocksZ || blocksY > 65535 ||
      blocksZ > 65535 || !threads || threads > 1024 || threadsZ > 64 ||
      sharedBytes > (unsigned)(function == raised ? raisedTo : 48 << 10))
    return INVALID_VALUE;
  progress(stream, false);
  ++stream->launches;
  if (!ptx_run(function, &launch)) {
    /* The next call says it. */
    fprintf(stderr, "cuda-stub: '%s': %s\n", function->name, launch.message);
    lost = ILLEGAL_ADDRESS;
  }
  return 0;
}
