#include "unshuffle/core/output_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle {
namespace {

namespace fs = std::filesystem;

class OutputFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "unshuffle_test_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] long files() const { return std::distance(fs::directory_iterator(folder_), {}); }

  fs::path folder_;
};

template <class Action>
std::string complaint(Action action) {
  try {
    action();
  } catch (const SystemFailure& error) {
    return error.what();
  }
  return "";
}

TEST_F(OutputFile, holds_what_was_written_and_nothing_lies_beside_it) {
  write_whole_file(path("a"), "old");
  write_whole_file(path("a"), "new");
  EXPECT_EQ(read_file(path("a")), "new");
  EXPECT_EQ(files(), 1);
}

// One thread ends the process while others are between making a file and renaming it.
TEST_F(OutputFile, nothing_is_left_of_a_process_that_ends_while_its_threads_write) {
  for (int run = 0; run < 100; ++run) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::atomic<int> started = 0;
      for (int writer = 0; writer < 3; ++writer)
        std::thread([&, writer] {
          for (;; ++started) write_whole_file(path(fmt::format("a{}", writer)), "content");
        }).detach();
      while (started < 3) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(20 * run));
      remove_unfinished_files();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    for (const auto& entry : fs::directory_iterator(folder_))
      ASSERT_EQ(entry.path().filename().string().front(), 'a') << "run " << run << " left " << entry.path();
  }
}

TEST_F(OutputFile, keeps_the_mode_of_the_file_it_replaces) {
  write_whole_file(path("a"), "old");
  ::chmod(path("a").c_str(), 0640);
  write_whole_file(path("a"), "new");
  EXPECT_EQ(fs::status(path("a")).permissions(), static_cast<fs::perms>(0640));
}

TEST_F(OutputFile, a_link_stays_a_link) {
  write_whole_file(path("a"), "old");
  fs::create_symlink(path("a"), path("b"));
  write_whole_file(path("b"), "new");
  EXPECT_TRUE(fs::is_symlink(path("b")));
  EXPECT_EQ(read_file(path("a")), "new");
}

TEST_F(OutputFile, a_missing_folder_is_named) {
  const std::string target = path("no/a");
  EXPECT_EQ(complaint([&] { write_whole_file(target, "x"); }),
            target + ": cannot be written: No such file or directory");
  EXPECT_EQ(complaint([&] { require_writable(target); }), target + ": cannot be written: No such file or directory");
}

TEST_F(OutputFile, a_folder_is_no_file) {
  EXPECT_EQ(complaint([&] { write_whole_file(folder_.string(), "x"); }),
            folder_.string() + ": cannot be written: Is a directory");
}

TEST_F(OutputFile, a_full_disk_is_told) {
  EXPECT_EQ(complaint([] { write_whole_file("/dev/full", "x"); }),
            "/dev/full: cannot be written: No space left on device");
}

TEST_F(OutputFile, a_file_is_the_same_however_it_is_written) {
  write_whole_file(path("a"), "old");
  fs::create_symlink(path("a"), path("b"));
  EXPECT_TRUE(same_output(path("a"), path("b")));
  EXPECT_TRUE(same_output(path("new"), path("./new")));
  EXPECT_TRUE(same_output("new", "./new"));
  EXPECT_FALSE(same_output(path("a"), path("new")));
  EXPECT_FALSE(same_output("/dev/null", "/dev/null"));
}

TEST_F(OutputFile, asking_whether_it_can_be_written_leaves_nothing) {
  require_writable(path("a"));
  EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace unshuffle
