/* How the compiler keeps CUDA's machine code beside a kernel's PTX, where the
 * runtime finds it: behind the PTX, which ends with a zero, any number of
 *   zeros | the code | zeros to 8 bytes | a heed_cuda_code_end,
 * to be read from the end. */
#ifndef HEED_CUDA_CODE_H
#define HEED_CUDA_CODE_H

#include <stdint.h>

#define HEED_CUDA_CODE_MARK "heedcub1"

typedef struct heed_cuda_code_end {
  uint64_t bytes;       /* of the code */
  uint64_t whole;       /* from its first zero to behind this struct */
  int32_t major, minor; /* of the compute capability that it is for */
  char mark[8];         /* HEED_CUDA_CODE_MARK, without a zero */
} heed_cuda_code_end;

#endif
