// Reading untrusted bytes may throw BadData and nothing else.
#pragma once

#include "unshuffle/core/error.hpp"

template <class Read>
void read_or_refuse(const Read& read) {
  try {
    read();
  } catch (const unshuffle::BadData&) {
  }
}
