#include "pixels/pickle_depth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "unshuffle/core/error.hpp"

namespace unshuffle::pixels {
namespace {

constexpr int deepest = 64;

/// Runs a pickle of protocol 2 on depths instead of values.
class PickleMachine {
 public:
  PickleMachine(std::string_view pickle, const std::string& source) : rest_(pickle), source_(source) {}

  void run() {
    while (true) {
      const auto code = static_cast<unsigned char>(take(1).front());
      if (code == '.') return;
      step(code);
    }
  }

 private:
  struct Value {
    std::size_t id = 0;       // where its depth stands; a value and its memory are one
    bool remembered = false;  // taken from the memo: it may be part of something already
  };

  [[noreturn]] void refuse(const char* why) const {
    throw BadData(
        fmt::format("{}: cannot be read: {}; a file that torch.save(model.state_dict(), FILE) writes was "
                    "expected",
                    source_, why));
  }

  std::string_view take(std::size_t size) {
    if (size > rest_.size()) refuse("its pickle is cut short");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::uint32_t number(std::size_t bytes) {
    std::uint32_t value = 0;
    const std::string_view digits = take(bytes);
    for (std::size_t k = bytes; k-- > 0;) value = value << 8U | static_cast<unsigned char>(digits[k]);
    return value;
  }

  void skip_line() { (void)take(std::min(rest_.find('\n'), rest_.size()) + 1); }

  void push(int depth) {
    stack_.push_back({depths_.size()});
    depths_.push_back(checked(depth));
  }

  [[nodiscard]] int checked(int depth) const {
    if (depth > deepest) refuse("its values are nested too deep");
    return depth;
  }

  Value pop() {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) refuse("its pickle takes what is not there");
    const Value top = stack_.back();
    stack_.pop_back();
    return top;
  }

  int pop_depth(int count) {
    int depth = 0;
    for (; count > 0; --count) depth = std::max(depth, depths_[pop().id]);
    return depth;
  }

  int pop_to_mark() {
    if (marks_.empty()) refuse("its pickle takes what is not there");
    const int depth = pop_depth(static_cast<int>(stack_.size() - marks_.back()));
    marks_.pop_back();
    return depth;
  }

  void put_into(int depth) {
    const Value target = pop();
    if (target.remembered) refuse("its pickle changes a value that others hold");
    depths_[target.id] = checked(std::max(depths_[target.id], depth + 1));
    stack_.push_back(target);
  }

  void recall(std::uint32_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) refuse("its pickle takes what is not there");
    stack_.push_back({found->second, true});
  }

  void remember(std::uint32_t key) {
    if (stack_.empty()) refuse("its pickle takes what is not there");
    memo_[key] = stack_.back().id;
  }

  void step(unsigned char code) {
    switch (code) {
      case 0x80:  // protocol
        (void)take(1);
        return;
      case '(':
        return marks_.push_back(stack_.size());
      case ')':
      case ']':
      case '}':
      case 'N':
      case 0x88:
      case 0x89:
        return push(0);
      case 'K':
        return push_after(1);
      case 'M':
        return push_after(2);
      case 'J':
        return push_after(4);
      case 'G':
        return push_after(8);
      case 0x8a:
      case 'U':
        return push_after(number(1));
      case 'X':
        return push_after(number(4));
      case 'c':
        skip_line();
        skip_line();
        return push(0);
      default:
        return step_on_values(code);
    }
  }

  void push_after(std::size_t bytes) {
    (void)take(bytes);
    push(0);
  }

  void step_on_values(unsigned char code) {
    switch (code) {
      case 'q':
        return remember(number(1));
      case 'r':
        return remember(number(4));
      case 'h':
        return recall(number(1));
      case 'j':
        return recall(number(4));
      case 't':
        return push(pop_to_mark() + 1);
      case 0x85:
        return push(pop_depth(1) + 1);
      case 0x86:
        return push(pop_depth(2) + 1);
      case 0x87:
        return push(pop_depth(3) + 1);
      case 'Q':
        return push(pop_depth(1) + 1);
      case 'R':
        return push(pop_depth(2) + 1);
      case 'a':
      case 'b':
        return put_into(pop_depth(1));
      case 's':
        return put_into(pop_depth(2));
      case 'e':
      case 'u':
        return put_into(pop_to_mark());
      default:
        refuse("its pickle does what no state dictionary needs");
    }
  }

  std::string_view rest_;
  const std::string& source_;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;
  std::vector<int> depths_;
  std::map<std::uint32_t, std::size_t> memo_;
};

}  // namespace

void require_shallow_pickle(std::string_view pickle, const std::string& source) { PickleMachine(pickle, source).run(); }

}  // namespace unshuffle::pixels
