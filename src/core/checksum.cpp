#include "core/checksum.hpp"

#include <fmt/format.h>

#include <boost/crc.hpp>
#include <cstdint>

namespace unshuffle {
namespace {

/// CRC-64 of ECMA-182, bits reversed, as xz uses it.
std::uint64_t checksum_of(std::string_view bytes) {
  boost::crc_optimal<64, 0x42F0E1EBA9EA3693ULL, ~std::uint64_t{0}, ~std::uint64_t{0}, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::string head_for(std::string_view rest) { return fmt::format("{{\"checksum\":\"{:016x}\",", checksum_of(rest)); }

const std::size_t head_size = head_for("").size();

}  // namespace

std::string with_checksum(std::string_view object) {
  object.remove_prefix(1);  // the brace, which the head begins with
  return head_for(object).append(object);
}

bool checksum_holds(std::string_view content) {
  return content.size() > head_size && content.starts_with(head_for(content.substr(head_size)));
}

}  // namespace unshuffle
