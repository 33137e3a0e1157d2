// How deep the values of a pickle are nested, told before anything is made of them.
#pragma once

#include <string>
#include <string_view>

namespace unshuffle::pixels {

/// Throws BadData naming `source` when the pickle is cut short, does what no state dictionary needs, or nests values
/// deeper than one: whoever builds them takes them apart again by recursion.
void require_shallow_pickle(std::string_view pickle, const std::string& source);

}  // namespace unshuffle::pixels
