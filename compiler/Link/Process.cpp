//===- Process.cpp - what every tool does first ---------------------------===//

#include "compiler/Link/Process.h"
#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>

void heed::prepareProcess() {
  // A folder's descriptor can be neither read nor written, like none. Messages
  // that nobody wants to see are no error.
  for (int stream : {0, 1, 2})
    if (fcntl(stream, F_GETFD) < 0)
      (void)open(stream == 2 ? "/dev/null" : "/",
                 stream == 2 ? O_WRONLY : O_RDONLY | O_DIRECTORY);
  std::signal(SIGXFSZ, SIG_IGN);
  // The system keeps at least 128 MB of addresses free below the stack.
  constexpr rlim_t wanted = 100 << 20;
  rlimit stack;
  if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < wanted) {
    stack.rlim_cur = std::min(wanted, stack.rlim_max);
    (void)setrlimit(RLIMIT_STACK, &stack);
  }
}
