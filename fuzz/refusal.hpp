// Reading foreign bytes may end in BadData and in nothing else that is thrown.
#pragma once

#include "unshuffle/core/error.hpp"

template <class Read>
void read_or_refuse(const Read& read) {
  try {
    read();
  } catch (const unshuffle::BadData&) {
  }
}
