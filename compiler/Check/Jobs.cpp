//===- Jobs.cpp - work in processes of its own, several at once -----------===//
#include "compiler/Check/Jobs.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

using llvm::outs;

namespace heed::check {

/// Seconds after which a job counts as hanging.
constexpr unsigned kPatience = 1800;

std::vector<int> runJobs(size_t count, unsigned atOnce,
                         llvm::function_ref<int(size_t)> work) {
  struct Job {
    std::FILE *output = nullptr;
    bool done = false;
  };
  std::vector<Job> jobs(count);
  std::vector<int> results(count, -1);
  std::map<pid_t, size_t> running;
  size_t next = 0, printed = 0;
  while (printed < count) {
    while (next < count && running.size() < atOnce) {
      jobs[next].output = std::tmpfile();
      outs().flush();
      pid_t child = jobs[next].output ? ::fork() : -1;
      if (child == 0) {
        ::dup2(::fileno(jobs[next].output), STDOUT_FILENO);
        ::alarm(kPatience);
        int code = work(next);
        outs().flush();
        ::_exit(code);
      }
      if (child > 0) {
        running[child] = next;
      } else {
        outs() << "  FAIL cannot start a process: " << std::strerror(errno)
               << "\n";
        jobs[next].done = true;
      }
      ++next;
    }
    if (!running.empty()) {
      int status = 0;
      pid_t child = ::waitpid(-1, &status, 0);
      auto found = running.find(child);
      if (found != running.end()) {
        Job &job = jobs[found->second];
        job.done = true;
        if (WIFEXITED(status))
          results[found->second] = WEXITSTATUS(status);
        else
          // After what the child had printed itself.
          std::fprintf((std::fseek(job.output, 0, SEEK_END), job.output),
                       "  FAIL the model's process was ended by signal %d "
                       "(%s)\n",
                       WTERMSIG(status), ::strsignal(WTERMSIG(status)));
        running.erase(found);
      }
    }
    for (; printed < count && jobs[printed].done; ++printed) {
      if (!jobs[printed].output)
        continue;
      std::rewind(jobs[printed].output);
      char block[4096];
      while (size_t n =
                 std::fread(block, 1, sizeof block, jobs[printed].output))
        outs() << llvm::StringRef(block, n);
      outs().flush();
      std::fclose(jobs[printed].output);
    }
  }
  return results;
}

} // namespace heed::check
