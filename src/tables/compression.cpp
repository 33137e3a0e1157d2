#include "tables/compression.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "unshuffle/core/error.hpp"
#ifdef UNSHUFFLE_ZSTD
#include <zstd.h>
#endif

namespace unshuffle {
namespace {

constexpr std::size_t expanded_block = 1 << 18;

[[noreturn]] void complain_of_damage(const std::string& source, std::string_view format) {
  throw BadData(
      fmt::format("{}: the {} data is damaged or ends early; copy or compress the file again", source, format));
}

}  // namespace

std::string from_gzip(std::string_view bytes, const std::string& source) {
  z_stream stream{};
  constexpr int gzip_only = 16 + MAX_WBITS;
  if (inflateInit2(&stream, gzip_only) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, &inflateEnd);
  std::vector<char> block(expanded_block);
  std::string text;
  for (;;) {
    constexpr std::size_t most = 1 << 30;  // zlib counts in 32 bits
    const std::string_view input = bytes.substr(0, most);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));  // zlib does not write to it
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    const int outcome = inflate(&stream, Z_NO_FLUSH);
    text.append(block.data(), block.size() - stream.avail_out);
    bytes.remove_prefix(input.size() - stream.avail_in);
    if (outcome == Z_MEM_ERROR) throw std::bad_alloc();
    if (outcome == Z_STREAM_END) {
      if (!bytes.starts_with(gzip_mark)) return text;
      inflateReset(&stream);  // files joined with cat are several streams, one behind the other
    } else if (outcome != Z_OK) {
      complain_of_damage(source, "gzip");
    }
  }
}

#ifdef UNSHUFFLE_ZSTD
std::string from_zstd(std::string_view bytes, const std::string& source) {
  const std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(), &ZSTD_freeDStream);
  if (!stream) throw std::bad_alloc();
  std::vector<char> block(expanded_block);
  std::string text;
  ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
  for (;;) {
    ZSTD_outBuffer output{block.data(), block.size(), 0};
    const std::size_t before = input.pos;
    const std::size_t wanted = ZSTD_decompressStream(stream.get(), &output, &input);
    if (ZSTD_isError(wanted) != 0) complain_of_damage(source, "zstd");
    text.append(block.data(), output.pos);
    if (input.pos == input.size && wanted == 0) return text;
    if (input.pos == before && output.pos == 0) complain_of_damage(source, "zstd");
  }
}
#else
std::string from_zstd(std::string_view, const std::string& source) {
  throw BadData(
      fmt::format("{}: is compressed with zstd, which this build does not read; decompress it (zstd -d)", source));
}
#endif

}  // namespace unshuffle
