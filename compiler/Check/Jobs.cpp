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

namespace {

struct Job {
  std::FILE *output = nullptr;
  bool done = false;
};

/// The process of a job, or -1.
pid_t start(Job &job, llvm::function_ref<int()> work) {
  job.output = std::tmpfile();
  outs().flush();
  pid_t child = job.output ? ::fork() : -1;
  if (child == 0) {
    ::dup2(::fileno(job.output), STDOUT_FILENO);
    ::alarm(kPatience);
    int code = work();
    outs().flush();
    ::_exit(code);
  }
  return child;
}

/// The exit code of a job that has ended; -1 after a signal, which its output
/// then names.
int finish(Job &job, int status) {
  job.done = true;
  if (WIFEXITED(status))
    return WEXITSTATUS(status);
  // After what the child had printed itself.
  std::fseek(job.output, 0, SEEK_END);
  std::fprintf(job.output,
               "  FAIL the model's process was ended by signal %d (%s)\n",
               WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return -1;
}

void print(Job &job) {
  if (!job.output)
    return;
  std::fseek(job.output, 0, SEEK_SET);
  char block[4096];
  while (size_t n = std::fread(block, 1, sizeof block, job.output))
    outs() << llvm::StringRef(block, n);
  outs().flush();
  std::fclose(job.output);
}

} // namespace

std::vector<int> runJobs(size_t count, unsigned atOnce,
                         llvm::function_ref<int(size_t)> work) {
  std::vector<Job> jobs(count);
  std::vector<int> results(count, -1);
  std::map<pid_t, size_t> running;
  size_t next = 0, printed = 0;
  while (printed < count) {
    while (next < count && running.size() < atOnce) {
      pid_t child = start(jobs[next], [&] { return work(next); });
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
        results[found->second] = finish(jobs[found->second], status);
        running.erase(found);
      }
    }
    for (; printed < count && jobs[printed].done; ++printed)
      print(jobs[printed]);
  }
  return results;
}

} // namespace heed::check
